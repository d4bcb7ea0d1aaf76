/* SPDX-License-Identifier: Apache-2.0 */
#include "host/rocm.h"

#include "os/fault.h"
#include "host/rocm_prefix.h"
#include "machine.h"
#include <errno.h>

#define ENV(...) ((const char *const[]){ __VA_ARGS__, NULL })

static size_t find(struct machine *t, const char *const *env)
{
    struct facts_options o = { 0 };
    struct cairn_error err = { 0 };
    machine_open(t, t->path, env);
    CHECK_INT(rocm_find(&t->f, &o, &err), 0);
    return t->f.n_rocms;
}

static void classic_installation(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--rocm 6.4.1 --targets gfx1030,gfx1100 --libs hipblaslt=gfx1100");
    REQUIRE(find(&t, ENV("PATH=/usr/bin", "ROCM_PATH=/opt/rocm/")) == 1);
    const struct rocm_facts *r = &t.f.rocms[0];
    CHECK_INT(r->kind, ROCM_CLASSIC);
    CHECK_STR(r->path, "/opt/rocm");
    CHECK_STR(r->version.s, "6.4.1-83");
    CHECK_INT(r->parsed.part[2], 1);
    CHECK_HAS(r->hip_library.s, "lib/libamdhip64.so.6");
    CHECK_STR(machine_names(&r->rocblas), "gfx1030 gfx1100");
    CHECK_STR(machine_names(&r->hipblaslt), "gfx1100");
    CHECK_STR(r->miopen_version.s, "3.4.0");
    CHECK_HAS(r->miopen_version.from, FROM_VERSION);
    CHECK(r->has_rocminfo);
}

static void several_versions(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--rocm 6.2.0");
    machine_make(&t, "--rocm 6.10.1");
    machine_put(&t, "opt/rocm-7.0.2/.info/version-utils", "7.0.2-56\n");
    machine_put(&t, "opt/rocm-5.7.1/bin/rocminfo", "");
    machine_put(&t, "opt/rocm-leftover/share/file", "");
    REQUIRE(find(&t, ENV("PATH=/usr/bin")) == 4);
    CHECK_STR(t.f.rocms[0].path, "/opt/rocm");
    CHECK_STR(t.f.rocms[0].version.s, "6.10.1-83");
    CHECK_STR(t.f.rocms[1].version.s, "7.0.2-56");
    CHECK_STR(t.f.rocms[2].version.s, "6.2.0-83");
    CHECK_STR(t.f.rocms[3].version.s, "5.7.1"); /* by the directory's name */
    CHECK(!t.f.rocms[3].hip_library.s);
}

static void the_environment_comes_first(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--rocm 6.2.0");
    machine_put(&t, "srv/rocm/.info/version", "7.1.0\n");
    REQUIRE(find(&t, ENV("PATH=/usr/bin", "HIP_PATH=/srv/rocm", "ROCM_PATH=/not-there")) == 2);
    CHECK_STR(t.f.rocms[0].path, "/srv/rocm");
    CHECK_STR(t.f.rocms[0].miopen_version.s, "3.5.1");
}

static void packages_of_therock(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "opt/rocm/core-7.14/share/therock/therock_manifest.json",
                "{\"rocm_version\": \"7.14.0\", \"submodules\": []}");
    machine_put(&t, "opt/rocm/core-7.14/lib/libamdhip64.so.7", "");
    machine_put(&t, "opt/rocm/core-7.13/share/therock/therock_manifest.json", "{ damaged");
    machine_link(&t, "opt/rocm/core", "core-7.14");
    REQUIRE(find(&t, ENV("PATH=/usr/bin")) == 2);
    CHECK_STR(t.f.rocms[0].path, "/opt/rocm/core");
    CHECK_INT(t.f.rocms[0].kind, ROCM_THEROCK);
    CHECK_STR(t.f.rocms[0].version.s, "7.14.0");
    CHECK_STR(t.f.rocms[1].version.s, "7.13");
    CHECK_STR(t.f.rocms[0].miopen_version.s, NULL); /* not in the table, and not guessed */
}

static void packages_of_debian(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "usr/lib/x86_64-linux-gnu/libamdhip64.so.5.2.21153-0", "");
    machine_link(&t, "usr/lib/x86_64-linux-gnu/libamdhip64.so.5", "libamdhip64.so.5.2.21153-0");
    machine_put(&t, "usr/lib/x86_64-linux-gnu/rocblas/2.46.0/library/TensileLibrary_lazy_gfx1030.dat", "");
    machine_put(&t, "usr/bin/rocminfo", "");
    REQUIRE(find(&t, ENV("PATH=/usr/bin", "ROCM_PATH=/usr")) == 1);
    const struct rocm_facts *r = &t.f.rocms[0];
    CHECK_INT(r->kind, ROCM_DISTRO);
    CHECK_STR(r->path, "/usr");
    CHECK_STR(r->version.s, "5.2");
    CHECK_STR(machine_names(&r->rocblas), "gfx1030");
    CHECK(r->has_rocminfo);
}

static void packages_of_fedora(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "usr/lib64/libamdhip64.so.6.4.60403", "");
    machine_link(&t, "usr/lib64/libamdhip64.so.6", "libamdhip64.so.6.4.60403");
    machine_put(&t, "usr/lib64/rocblas/library/TensileLibrary_lazy_gfx90a.dat", "");
    machine_put(&t, "usr/lib64/rocm/gfx11/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "");
    machine_put(&t, "usr/lib64/rocm/gfx9/lib/rocblas/library/TensileLibrary_lazy_gfx942.dat", "");
    REQUIRE(find(&t, ENV("PATH=/usr/bin")) == 1);
    CHECK_STR(t.f.rocms[0].version.s, "6.4.3");
    CHECK_STR(machine_names(&t.f.rocms[0].rocblas), "gfx90a gfx942 gfx1100");
}

static void wheels_in_a_python(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--layout therock --hip 7.2.1 --rocm 7.2.1rc1 --targets gfx1151,gfx1201");
    REQUIRE(find(&t, ENV("PATH=/usr/bin", "VIRTUAL_ENV=/venv")) == 1);
    const struct rocm_facts *r = &t.f.rocms[0];
    CHECK_INT(r->kind, ROCM_WHEEL);
    CHECK_HAS(r->path, "_rocm_sdk_core");
    CHECK_STR(r->version.s, "7.2.1rc1");
    CHECK_HAS(r->version.from, "rocm_sdk_core");
    CHECK_HAS(r->hip_library.s, r->path);
    CHECK_STR(machine_names(&r->rocblas), "gfx1151 gfx1201");
    CHECK(r->has_rocminfo);
}

static void versions_of_miopen(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "opt/rocm/.info/version", "6.4.0\n");
    machine_put(&t, "opt/rocm/lib/libMIOpen.so.1.0.60300", "");
    find(&t, ENV("PATH=/usr/bin"));
    CHECK_STR(t.f.rocms[0].miopen_version.s, "3.3.0"); /* the file tells more than the release */
    machine_put(&t, "opt/rocm/lib/cmake/miopen/miopen-config-version.cmake",
                "set(PACKAGE_VERSION \"3.4.1\")\n");
    find(&t, ENV("PATH=/usr/bin"));
    CHECK_STR(t.f.rocms[0].miopen_version.s, "3.4.1");
    machine_put(
        &t, "opt/rocm/include/miopen/version.h",
        "#define MIOPEN_VERSION_MAJOR 3\n#define MIOPEN_VERSION_MINOR 5\n#define MIOPEN_VERSION_PATCH 1\n");
    find(&t, ENV("PATH=/usr/bin"));
    CHECK_STR(t.f.rocms[0].miopen_version.s, "3.5.1");
    CHECK_HAS(t.f.rocms[0].miopen_version.from, "version.h");
}

static void nothing_there(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "opt/rocm/README", "");
    machine_link(&t, "opt/rocm-9.9", "rocm-9.9");
    CHECK_INT(find(&t, ENV("PATH=/usr/bin", "ROCM_PATH=relative", "HIP_PATH=/")), 0);
}

static void given_by_the_user(void)
{
    CLEANUP(machine_release) struct machine t = machine_new(), empty = machine_new();
    machine_make(&t, "--rocm 6.4.1");
    struct cairn_error err = { 0 };
    struct facts_options o = { .rocm_dir = machine_path(&t, "opt/rocm") };
    machine_open(&t, empty.path, ENV("PATH=/usr/bin"));
    CHECK_INT(rocm_find(&t.f, &o, &err), 0);
    REQUIRE(t.f.n_rocms == 1);
    CHECK_STR(t.f.rocms[0].version.s, "6.4.1-83");
    const char *const bad[] = { "not-there", "venv" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        o.rocm_dir = machine_path(&t, bad[i]);
        CHECK_INT(rocm_find(&t.f, &o, &err), -1);
        CHECK_INT(err.code, CAIRN_EUSAGE);
        CHECK_HAS(err.msg, bad[i]);
    }
}

static void every_outside_call_may_fail(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--rocm 6.4.1");
    struct facts_options o = { 0 };
    for (int nth = 1;; nth++) {
        struct cairn_error err = { 0 };
        machine_open(&t, t.path, ENV("PATH=/usr/bin"));
        fault_arm(nth, EIO);
        int r = rocm_find(&t.f, &o, &err);
        if (!fault_disarm())
            break;
        CHECK_INT(r, 0);
        REQUIRE(nth < 1000);
    }
    CHECK_INT(t.f.n_rocms, 1);
}

int main(void)
{
    RUN(classic_installation);
    RUN(several_versions);
    RUN(the_environment_comes_first);
    RUN(packages_of_therock);
    RUN(packages_of_debian);
    RUN(packages_of_fedora);
    RUN(wheels_in_a_python);
    RUN(versions_of_miopen);
    RUN(nothing_there);
    RUN(given_by_the_user);
    RUN(every_outside_call_may_fail);
    return check_done();
}
