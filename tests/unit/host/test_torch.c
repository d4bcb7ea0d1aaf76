/* SPDX-License-Identifier: Apache-2.0 */
#include "host/torch.h"

#include "os/fault.h"
#include "host/rocm_prefix.h"
#include "machine.h"
#include <errno.h>
#include <time.h>

#define SITE "venv/lib/python3.11/site-packages/"

static const char *const no_env[] = { "PATH=/usr/bin", NULL };

/* The torch of a tree; NULL if there is not just one. */
static const struct torch_facts *find(struct machine *t)
{
    struct facts_options o = { 0 };
    struct cairn_error err = { 0 };
    machine_open(t, t->path, no_env);
    CHECK_INT(torch_find(&t->f, &o, &err), 0);
    CHECK_INT(t->f.n_torches, 1);
    return t->f.n_torches == 1 ? &t->f.torches[0] : NULL;
}

static void wheel_of_pytorch_org(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t,
                 "--torch 2.9.1+rocm6.4 --hip 6.4.43484-123eb5128 --targets gfx900,gfx90a,gfx1030,gfx1100 "
                 "--libs hipblaslt=gfx90a+gfx1100,miopen=gfx90a+gfx1030");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK_STR(p->site, "/venv/lib/python3.11/site-packages");
    CHECK_STR(p->python, "/venv/bin/python3");
    CHECK_STR(p->version.s, "2.9.1+rocm6.4");
    CHECK_STR(p->hip.s, "6.4.43484-123eb5128");
    CHECK_INT(p->hip_parsed.part[1], 4);
    CHECK_INT(p->build, TORCH_ROCM);
    CHECK(!p->therock && !p->kpack);
    CHECK_STR(machine_names(&p->compiled), "gfx900 gfx90a gfx1030 gfx1100");
    CHECK_HAS(p->compiled.from, "libtorch_python.so");
    CHECK_STR(machine_names(&p->rocblas), "gfx90a gfx900 gfx1030 gfx1100");
    CHECK_STR(machine_names(&p->hipblaslt), "gfx90a gfx1100");
    CHECK_STR(machine_names(&p->miopen), "gfx90a gfx1030");
    CHECK_HAS(p->hip_library.s, "torch/lib/libamdhip64.so");
    CHECK_STR(p->miopen_version.s, "3.4.0");
    CHECK_HAS(p->miopen_version.from, FROM_VERSION);
    CHECK_STR(p->aotriton_version.s, "0.11.0");
    CHECK_HAS(p->aotriton_version.from, FROM_VERSION);
    CHECK(!p->device_wheels.from);
    CHECK_INT(p->problems.n, 0);
}

static void targets_from_code_objects(void)
{
    static const char *const kinds[] = { "plain", "ccob1", "ccob2", "ccob3", "ccob2-zlib", "ccob3-zlib" };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        CLEANUP(machine_release) struct machine t = machine_new();
        char options[256];
        snprintf(options, sizeof(options), "--no-arch-string --targets gfx1151,gfx90a:xnack- --bundle %s",
                 kinds[i]);
        machine_make(&t, options);
        const struct torch_facts *p = find(&t);
        REQUIRE(p);
        CHECK_STR(machine_names(&p->compiled), "gfx1151 gfx90a");
        CHECK_HAS(p->compiled.from, "libtorch_hip.so");
        CHECK_INT(p->problems.n, 0);
    }
}

static void version_files_of_all_ages(void)
{
    static const struct {
        const char *text, *version, *hip, *cuda;
        enum torch_build build;
        size_t problems;
    } rows[] = {
        { "__version__ = '2.9.1+rocm6.4'\ncuda: Optional[str] = None\nhip: Optional[str] = '6.4.43484'\n",
          "2.9.1+rocm6.4", "6.4.43484", NULL, TORCH_ROCM, 0 },
        { "__version__ = \"1.13.0\"\ndebug = False\ncuda = None\ngit_version = 'x'\nhip = \"5.2.2\"",
          "1.13.0", "5.2.2", NULL, TORCH_ROCM, 0 },
        { "__version__='2.8.0+cu128'\r\ncuda: Optional[str] = '12.8'\r\nhip: Optional[str] = None\r\n",
          "2.8.0+cu128", NULL, "12.8", TORCH_CUDA, 0 },
        { "__version__ = '2.10.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None\nxpu: "
          "Optional[str] = None\n",
          "2.10.0+cpu", NULL, NULL, TORCH_CPU, 0 },
        { "__version__ = '2.10.0+xpu'\ncuda = None\nhip = None\nxpu = '20250301'\n", "2.10.0+xpu", NULL, NULL,
          TORCH_XPU, 0 },
        { "__version__ = '2.6.0'\n", "2.6.0", NULL, NULL, TORCH_BUILD_UNKNOWN, 0 },
        { "# hip = 'no'\n __version__ = 'no'\nhipster = '1'\nchip = '2'\n", NULL, NULL, NULL,
          TORCH_BUILD_UNKNOWN, 1 },
        { "__version__ = 'unfinished\nhip = '6.4'\n", NULL, "6.4", NULL, TORCH_ROCM, 0 },
        { "", NULL, NULL, NULL, TORCH_BUILD_UNKNOWN, 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(machine_release) struct machine t = machine_new();
        machine_put(&t, "venv/pyvenv.cfg", "version = 3.11\n");
        machine_put(&t, SITE "torch/version.py", rows[i].text);
        const struct torch_facts *p = find(&t);
        REQUIRE(p);
        CHECK_STR(p->version.s, rows[i].version);
        CHECK_STR(p->hip.s, rows[i].hip);
        CHECK_STR(p->cuda.s, rows[i].cuda);
        CHECK_INT(p->build, rows[i].build);
        CHECK_INT(p->problems.n, rows[i].problems);
    }
}

static void metadata_when_the_file_is_not_readable(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "venv/pyvenv.cfg", "version = 3.11\n");
    machine_put(&t, SITE "torch/version.py/a-directory", "");
    machine_put(&t, SITE "torch/__init__.py", "");
    machine_put(&t, SITE "torch-2.9.1+rocm6.4.dist-info/METADATA", "");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK_STR(p->version.s, "2.9.1+rocm6.4");
    CHECK_HAS(p->version.from, "dist-info");
    CHECK_INT(p->build, TORCH_ROCM);
    CHECK(targets_has(&p->compiled, "gfx1100"));
    REQUIRE(p->problems.n == 1);
    CHECK_HAS(p->problems.text[0], "version.py");
}

static void by_version_when_files_do_not_tell(void)
{
    static const struct {
        const char *version, *hip, *has, *has_not;
    } rows[] = {
        { "2.5.1+rocm6.2", "6.2.41133", "gfx942", "gfx1101" },
        { "2.6.0+rocm6.2.4", "6.2.41134", "gfx1101", "gfx1102" },
        { "2.8.0+rocm6.4", "6.4.43482", "gfx1201", "gfx1151" },
        { "2.9.1+rocm6.4", "6.4.43484", "gfx1201", "gfx1151" },
        { "2.9.1+rocm7.0", "7.0.51831", "gfx1151", "gfx1103" },
        { "2.10.0+rocm6.4", "6.4.43484", "gfx1151", "gfx1031" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(machine_release) struct machine t = machine_new();
        char text[256];
        snprintf(text, sizeof(text), "__version__ = '%s'\nhip = '%s'\n", rows[i].version, rows[i].hip);
        machine_put(&t, "venv/pyvenv.cfg", "version = 3.11\n");
        machine_put(&t, SITE "torch/version.py", text);
        const struct torch_facts *p = find(&t);
        REQUIRE(p);
        CHECK_HAS(p->compiled.from, FROM_VERSION);
        CHECK(targets_has(&p->compiled, rows[i].has));
        CHECK(!targets_has(&p->compiled, rows[i].has_not));
    }
    /* Other builders have other lists, and so have releases from before the table. */
    static const char *const others[] = { "2.9.1+rocm7.2.1.lw.git0123abc", "2.9.0a0+git1234", "2.9.1",
                                          "2.3.0+rocm6.0" };
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        CLEANUP(machine_release) struct machine t = machine_new();
        char text[256];
        snprintf(text, sizeof(text), "__version__ = '%s'\nhip = '6.4.1'\n", others[i]);
        machine_put(&t, "venv/pyvenv.cfg", "version = 3.11\n");
        machine_put(&t, SITE "torch/version.py", text);
        const struct torch_facts *p = find(&t);
        REQUIRE(p);
        CHECK_STR(p->compiled.from, NULL);
    }
}

static void therock_wheels(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--layout therock --torch 2.10.0+rocm7.14.0 --hip 7.14.60850 --targets gfx1150,gfx1151 "
                     "--aotriton 0.12.0");
    machine_put(&t, SITE "_rocm_sdk_libraries_gfx1031/lib/rocblas/library/TensileLibrary_lazy_gfx1031.dat",
                "");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK(p->therock && !p->kpack);
    CHECK_HAS(p->hip_library.s, "_rocm_sdk_core/lib/libamdhip64.so.7");
    CHECK_STR(machine_names(&p->rocblas), "gfx1150 gfx1151 gfx1031");
    CHECK_STR(p->aotriton_version.s, "0.12.0");
    CHECK_HAS(p->aotriton_version.from, "libaotriton_v2.so.0.12.0");
    CHECK_STR(machine_names(&p->aotriton), "gfx1150 gfx1151 gfx1152 gfx1153");
}

static void device_wheels(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(
        &t, "--layout kpack --torch 2.11.0+rocm7.14.0 --hip 7.14.60850 --targets gfx1100,gfx1151,gfx1201 "
            "--device gfx1151");
    machine_put(&t, SITE "amd_torch_device_gfx115x-2.11.0.dist-info/METADATA", "");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK(p->therock && p->kpack);
    CHECK_STR(machine_names(&p->compiled), "gfx1100 gfx1151 gfx1201");
    CHECK_STR(machine_names(&p->device_wheels), "gfx1151");
    CHECK_INT(p->problems.n, 0);
    /* A copy without hidden files leaves metadata that promises too much. */
    unlink(machine_path(&t, SITE "torch/.kpack/torch_gfx1151.kpack"));
    p = find(&t);
    REQUIRE(p);
    CHECK(p->device_wheels.from);
    CHECK_INT(p->device_wheels.n, 0);
    REQUIRE(p->problems.n == 1);
    CHECK_HAS(p->problems.text[0], "torch_gfx1151.kpack");
}

static void device_wheels_are_the_only_list(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--layout kpack --hip 7.14.60850 --targets gfx1151 --device gfx1151 --no-arch-string");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK_STR(machine_names(&p->compiled), "gfx1151");
}

static void families_of_attention_kernels(void)
{
    static const struct {
        const char *version, *want;
    } rows[] = {
        { "0.11.0", "gfx1100 gfx1101 gfx1102 gfx1150 gfx1151 gfx90a gfx1200 gfx1201" },
        { "0.11.2",
          "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx90a gfx1200 gfx1201" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(machine_release) struct machine t = machine_new();
        machine_make(&t, i ? "--targets gfx900 --aotriton 0.11.2 --libs aotriton=gfx90a"
                           : "--targets gfx900 --aotriton 0.11.0 --libs aotriton=gfx90a");
        machine_put(&t, SITE "torch/lib/aotriton.images/amd-gfx11xx/flash/x.aks2", "");
        machine_put(&t, SITE "torch/lib/aotriton.images/amd-gfx120x/flash/x.aks2", "");
        const struct torch_facts *p = find(&t);
        REQUIRE(p);
        CHECK_STR(p->aotriton_version.s, rows[i].version);
        CHECK_STR(machine_names(&p->aotriton), rows[i].want);
    }
}

static void library_without_its_kernels(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--libs none --targets gfx1100");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK_STR(p->rocblas.from, NULL);
    machine_put(&t, SITE "torch/lib/librocblas.so", "");
    p = find(&t);
    REQUIRE(p);
    CHECK_HAS(p->rocblas.from, "rocblas");
    CHECK_INT(p->rocblas.n, 0);
    /* An index counts, kernels without one do not. */
    machine_put(&t, SITE "torch/lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat", "");
    machine_put(&t, SITE "torch/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco", "");
    machine_put(&t, SITE "torch/lib/rocblas/library/gfx1151/TensileLibrary_lazy_gfx1151.dat", "");
    p = find(&t);
    REQUIRE(p);
    CHECK_STR(machine_names(&p->rocblas), "gfx1030 gfx1151");
}

/* What cannot be read may hold anything: not known, and not "none". */
static void unreadable_is_not_empty(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--libs none --targets gfx1100");
    machine_put(&t, SITE "torch/lib/librocblas.so", "");
    machine_link(&t, SITE "torch/lib/rocblas/library", "library");
    machine_put(&t, SITE "bitsandbytes-0.49.0.dist-info/METADATA", "");
    machine_link(&t, SITE "bitsandbytes", "bitsandbytes");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK_STR(p->rocblas.from, NULL);
    CHECK_INT(p->bitsandbytes.fits, TRI_UNKNOWN);
}

static void huge_file_that_is_no_library(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--targets gfx1100,gfx1101");
    machine_put(&t, SITE "torch/lib/libtorch_hip.so", "");
    REQUIRE(!truncate(machine_path(&t, SITE "torch/lib/libtorch_hip.so"), (off_t)10 << 30));
    const struct torch_facts *p = find(&t);
    REQUIRE(p && p->problems.n == 1);
    CHECK_HAS(p->problems.text[0], "torch/lib/libtorch_hip.so");
    CHECK_HAS(p->problems.text[0], "not an ELF file");
    CHECK_STR(machine_names(&p->compiled), "gfx1100 gfx1101");
}

static void unreadable_things_are_told(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--targets gfx1100,gfx1101");
    unlink(machine_path(&t, SITE "torch/lib/libtorch_python.so"));
    machine_put(&t, SITE "torch/lib/libtorch_python.so/file", "");
    REQUIRE(!truncate(machine_path(&t, SITE "torch/lib/libtorch_hip.so"), 5000));
    const struct torch_facts *p = find(&t);
    REQUIRE(p && p->problems.n == 2);
    CHECK_HAS(p->problems.text[0], "libtorch_python.so: Is a directory");
    CHECK_HAS(p->problems.text[1], "libtorch_hip.so");
    CHECK_HAS(p->compiled.from, FROM_VERSION);
}

static void each_torch_once(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--targets gfx1100");
    machine_make(&t, "--layout debian --hip none --torch 1.13.1");
    machine_link(&t, "alias", "venv");
    struct facts_options o = { 0 };
    struct cairn_error err = { 0 };
    static const char *const env[] = { "VIRTUAL_ENV=/alias", "PATH=/venv/bin:/usr/bin", NULL };
    machine_open(&t, t.path, env);
    CHECK_INT(torch_find(&t.f, &o, &err), 0);
    REQUIRE(t.f.n_torches == 1);
    CHECK_STR(t.f.torches[0].how, "VIRTUAL_ENV");
    static const char *const both[] = { "VIRTUAL_ENV=/alias", "PATH=/usr/bin", NULL };
    machine_open(&t, t.path, both);
    CHECK_INT(torch_find(&t.f, &o, &err), 0);
    REQUIRE(t.f.n_torches == 2);
    CHECK_INT(t.f.torches[0].build, TORCH_ROCM);
    CHECK_INT(t.f.torches[1].build, TORCH_CPU);
    CHECK_STR(t.f.torches[1].site, "/usr/lib/python3/dist-packages");
}

static void given_by_the_user(void)
{
    CLEANUP(machine_release) struct machine t = machine_new(), empty = machine_new();
    machine_make(&t, "--targets gfx1100,gfx1151");
    struct facts_options o = { .torch_dir = machine_path(&t, "venv") };
    struct cairn_error err = { 0 };
    machine_open(&t, empty.path, no_env);
    CHECK_INT(torch_find(&t.f, &o, &err), 0);
    REQUIRE(t.f.n_torches == 1);
    CHECK_STR(machine_names(&t.f.torches[0].compiled), "gfx1100 gfx1151");
    o.torch_dir = empty.path;
    machine_open(&t, empty.path, no_env);
    CHECK_INT(torch_find(&t.f, &o, &err), -1);
    CHECK_INT(err.code, CAIRN_EUSAGE);
    CHECK_HAS(err.msg, "contains no PyTorch");
    CHECK(err.hint[0]);
}

static void every_outside_call_may_fail(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--layout kpack --hip 7.14.60850 --targets gfx1151,gfx1100 --bnb 0.50.0:rocm714:gfx1151 "
                     "--triton 3.5.1 "
                     "--flash-attn 2.8.3 --accelerate 1.12.0");
    struct facts_options o = { 0 };
    for (int nth = 1;; nth++) {
        struct cairn_error err = { 0 };
        machine_open(&t, t.path, no_env);
        fault_arm(nth, EIO);
        int r = torch_find(&t.f, &o, &err);
        if (!fault_disarm())
            break;
        CHECK_INT(r, 0); /* less is known, but that is no error */
        REQUIRE(nth < 2000);
    }
    CHECK_INT(t.f.n_torches, 1);
    CHECK_INT(t.f.torches[0].problems.n, 0);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Files of the true sizes, 1.5 GB with 400 bundles.  The bound is generous, for
 * sanitizers and busy machines; reading all of it would take seconds. */
static void true_sizes_take_milliseconds(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--big --libs none --no-arch-string --targets gfx900,gfx1030,gfx1100");
    REQUIRE(find(&t));
    double start = now_ms();
    const struct torch_facts *p = find(&t);
    CHECK(now_ms() - start < 500);
    CHECK_STR(machine_names(&p->compiled), "gfx900 gfx1030 gfx1100");
}

int main(void)
{
    RUN(wheel_of_pytorch_org);
    RUN(targets_from_code_objects);
    RUN(version_files_of_all_ages);
    RUN(metadata_when_the_file_is_not_readable);
    RUN(by_version_when_files_do_not_tell);
    RUN(therock_wheels);
    RUN(device_wheels);
    RUN(device_wheels_are_the_only_list);
    RUN(families_of_attention_kernels);
    RUN(library_without_its_kernels);
    RUN(unreadable_is_not_empty);
    RUN(huge_file_that_is_no_library);
    RUN(unreadable_things_are_told);
    RUN(each_torch_once);
    RUN(given_by_the_user);
    RUN(every_outside_call_may_fail);
    RUN(true_sizes_take_milliseconds);
    return check_done();
}
