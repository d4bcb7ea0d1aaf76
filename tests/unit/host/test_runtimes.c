/* SPDX-License-Identifier: Apache-2.0 */
#include "host/runtimes.h"

#include "machine.h"

#define ENV(...) ((const char *const[]){ "PATH=/usr/bin", __VA_ARGS__, NULL })
#define SITE "venv/lib/python3.12/site-packages/"
#define DEBIAN "usr/lib/x86_64-linux-gnu/"

static const struct hip_runtime *found;

static size_t find(struct machine *t, const char *const *env)
{
    struct facts_options o = { .root = t->path, .env = env, .parts = FACTS_SOFTWARE };
    struct cairn_error err = { 0 };
    facts_release(&t->f);
    if (facts_read(&t->f, &o, &err))
        CHECK_FAIL_("%s", err.msg);
    found = t->f.runtimes;
    return t->f.n_runtimes;
}

static void put_torch(struct machine *t, const char *site, const char *version, const char *hip)
{
    char path[256], text[256];
    const char *const files[] = { "__init__.py", "lib/libamdhip64.so", "lib/libhiprtc.so",
                                  "lib/libhiprtc-builtins.so", "lib/librocblas.so" };
    snprintf(path, sizeof(path), "%storch/version.py", site);
    snprintf(text, sizeof(text), "__version__ = '%s'\nhip = '%s'\ncuda = None\n", version, hip);
    machine_put(t, path, text);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        snprintf(path, sizeof(path), "%storch/%s", site, files[i]);
        machine_put(t, path, "");
    }
    snprintf(path, sizeof(path), "%s../../../pyvenv.cfg", site);
    machine_put(t, path, "home = /usr/bin\n");
}

static void put_debian_5(struct machine *t)
{
    machine_put(t, DEBIAN "libamdhip64.so.5", "");
    machine_put(t, DEBIAN "librocblas.so.0", "");
}

static void a_wheel_is_newer_than_the_distribution(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    put_debian_5(&t);
    put_torch(&t, SITE, "2.9.1+rocm6.4", "6.4.43484");
    REQUIRE(find(&t, ENV("VIRTUAL_ENV=/venv")) == 2);
    CHECK_STR(found[0].hip, "/" SITE "torch/lib/libamdhip64.so");
    CHECK_STR(found[0].files.hiprtc, "/" SITE "torch/lib/libhiprtc.so");
    CHECK_STR(found[0].files.rocblas, "/" SITE "torch/lib/librocblas.so");
    CHECK_HAS(runtime_text(&found[0], &t.f.arena), "ROCm 6.4, of PyTorch 2.9.1+rocm6.4");
    CHECK_HAS(found[1].hip, "libamdhip64.so.5");
    CHECK_STR(found[1].files.hiprtc, found[1].hip);      /* ROCm 5 has it inside */
    CHECK(!found[0].named && !found[0].files.hipblaslt); /* nothing of another release */
}

static void the_newest_wins_and_opt_among_equals(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    put_torch(&t, SITE, "2.10.0+rocm7.0", "7.0.51831");
    machine_put(&t, "opt/rocm-6.4.1/.info/version", "6.4.1-83\n");
    machine_put(&t, "opt/rocm-6.4.1/lib/libamdhip64.so.6", "");
    machine_put(&t, "opt/rocm-6.4.1/lib/libhiprtc.so.6", "");
    REQUIRE(find(&t, ENV("VIRTUAL_ENV=/venv")) == 2);
    CHECK_HAS(found[0].hip, "torch/lib");
    machine_put(&t, "opt/rocm-7.0.0/.info/version", "7.0.0-1\n");
    machine_put(&t, "opt/rocm-7.0.0/lib/libamdhip64.so.7", "");
    machine_put(&t, "opt/rocm-7.0.0/lib/libhiprtc.so.7", "");
    REQUIRE(find(&t, ENV("VIRTUAL_ENV=/venv")) == 3);
    CHECK_STR(found[0].hip, "/opt/rocm-7.0.0/lib/libamdhip64.so.7");
    CHECK_STR(found[0].files.rocblas, "/" SITE "torch/lib/librocblas.so"); /* of the same release */
    CHECK_HAS(found[1].hip, "torch/lib");
    CHECK(!found[2].files.rocblas); /* that of 7.0 does not fit 6.4 */
}

static void the_user_decides(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    put_debian_5(&t);
    put_torch(&t, SITE, "2.9.1+rocm6.4", "6.4.43484");
    machine_put(&t, "opt/rocm-7.1.0/.info/version", "7.1.0\n");
    machine_put(&t, "opt/rocm-7.1.0/lib/libamdhip64.so.7", "");
    machine_put(&t, "opt/rocm-7.1.0/lib/libhiprtc.so.7", "");
    REQUIRE(find(&t, ENV("VIRTUAL_ENV=/venv", "ROCM_PATH=/" SITE "torch")) == 3);
    CHECK(found[0].named);
    CHECK_HAS(found[0].what, "ROCM_PATH");
    CHECK_HAS(found[0].hip, "torch/lib");
    REQUIRE(find(&t, ENV("VIRTUAL_ENV=/venv", "HIP_PATH=/usr/")) == 3);
    CHECK_HAS(found[0].hip, "libamdhip64.so.5");
    REQUIRE(find(&t, ENV("VIRTUAL_ENV=/venv", "LD_LIBRARY_PATH=/nowhere:/" DEBIAN)) == 3);
    CHECK_STR(found[0].what, "LD_LIBRARY_PATH");
    CHECK_HAS(found[0].hip, "libamdhip64.so.5");
    REQUIRE(find(&t, ENV("VIRTUAL_ENV=/venv", "ROCM_PATH=/not-there")) == 3);
    CHECK(!found[0].named);
    CHECK_HAS(found[0].hip, "/opt/rocm-7.1.0/");
}

static void wheels_of_therock(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    static const char *const names[] = { "_rocm_sdk_core/lib/libamdhip64.so.7",
                                         "_rocm_sdk_core/lib/libhiprtc.so.7",
                                         "_rocm_sdk_libraries_gfx1151/lib/librocblas.so.5",
                                         "_rocm_sdk_libraries_gfx1151/lib/libhipblaslt.so.1" };
    put_debian_5(&t);
    machine_make(&t, "--layout therock --torch 2.10.0+rocm7.10.0 --hip 7.10.1 --python 3.12");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char path[256];
        snprintf(path, sizeof(path), SITE "%s", names[i]);
        machine_put(&t, path, "");
    }
    REQUIRE(find(&t, ENV("VIRTUAL_ENV=/venv")) == 2);
    CHECK_HAS(found[0].hip, "/_rocm_sdk_core/lib/libamdhip64.so.7");
    CHECK_HAS(found[0].files.hiprtc, "/_rocm_sdk_core/lib/libhiprtc.so.7");
    CHECK_HAS(found[0].files.rocblas, "/librocblas.so");
    CHECK_HAS(found[0].files.hipblaslt, "/_rocm_sdk_libraries_gfx1151/lib/libhipblaslt.so.1");
    CHECK_HAS(found[0].what, "PyTorch 2.10.0+rocm7.10.0");
}

static void one_without_a_compiler_comes_last(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "opt/rocm-7.2.0/.info/version", "7.2.0\n");
    machine_put(&t, "opt/rocm-7.2.0/lib/libamdhip64.so.7", "");
    put_torch(&t, SITE, "2.9.1+rocm6.4", "6.4.43484");
    REQUIRE(find(&t, ENV("VIRTUAL_ENV=/venv")) == 2);
    CHECK_HAS(found[0].hip, "torch/lib");
    CHECK(!found[1].files.hiprtc); /* that of another major version does not fit */
}

static void names_with_a_hash_and_several_numbers(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "opt/a/lib/libamdhip64.so.6", "");
    machine_put(&t, "opt/a/lib/libamdhip64.so.7", "");
    machine_put(&t, "opt/a/lib/libamdhip64.so.10", "");
    machine_put(&t, "opt/a/lib/libhiprtc-0123abcd.so", "");
    machine_put(&t, "opt/a/lib/libhiprtc-builtins.so.10", "");
    REQUIRE(find(&t, ENV("ROCM_PATH=/opt/a")) == 1);
    CHECK_STR(found[0].hip, "/opt/a/lib/libamdhip64.so.10");
    CHECK_STR(found[0].files.hiprtc, "/opt/a/lib/libhiprtc-0123abcd.so");
    CHECK_INT(found[0].version.part[0], 10);
}

static void folders_of_the_loader(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "etc/ld.so.conf.d/x.conf", "# comment\n  /srv/lib # here\n");
    machine_put(&t, "srv/lib/libamdhip64.so.6", "");
    REQUIRE(find(&t, ENV("HOME=/")) == 1);
    CHECK_STR(found[0].hip, "/srv/lib/libamdhip64.so.6");
    CLEANUP(machine_release) struct machine none = machine_new();
    CHECK_INT(find(&none, ENV("HOME=/")), 0);
    CHECK(!found);
}

int main(void)
{
    RUN(a_wheel_is_newer_than_the_distribution);
    RUN(the_newest_wins_and_opt_among_equals);
    RUN(the_user_decides);
    RUN(wheels_of_therock);
    RUN(one_without_a_compiler_comes_last);
    RUN(names_with_a_hash_and_several_numbers);
    RUN(folders_of_the_loader);
    return check_done();
}
