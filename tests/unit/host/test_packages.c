/* SPDX-License-Identifier: Apache-2.0 */
#include "host/packages.h"

#include "host/torch.h"
#include "machine.h"

#define SITE "venv/lib/python3.11/site-packages/"

static const struct torch_facts *find_in(struct machine *t, const char *const *env)
{
    struct facts_options o = { 0 };
    struct cairn_error err = { 0 };
    machine_open(t, t->path, env);
    CHECK_INT(torch_find(&t->f, &o, &err), 0);
    CHECK_INT(t->f.n_torches, 1);
    return t->f.n_torches == 1 ? &t->f.torches[0] : NULL;
}

static const struct torch_facts *find(struct machine *t)
{
    static const char *const env[] = { "PATH=/usr/bin", NULL };
    return find_in(t, env);
}

static void which_library_bitsandbytes_loads(void)
{
    static const struct {
        const char *hip, *bnb;
        enum tri fits;
        const char *why, *targets;
    } rows[] = {
        { "6.4.43484", "0.49.0:rocm63+rocm64+cuda128:gfx1100,gfx1151", TRI_YES, "libbitsandbytes_rocm64.so",
          "gfx1100 gfx1151" },
        /* Up to 0.49 the very file, written 7 * 10 + 14. */
        { "6.3.42133", "0.49.0:rocm62+rocm64:gfx1100", TRI_NO, "6.2, 6.4", "" },
        { "7.14.60850", "0.49.2:rocm714:gfx1100", TRI_NO, "7.14", "" },
        /* Then the highest that is not newer, else the lowest, of the same major. */
        { "7.14.60850", "0.50.2:rocm71+rocm72+rocm714+rocm715:gfx1100", TRI_YES, "libbitsandbytes_rocm714.so",
          "gfx1100" },
        { "7.13.60850", "0.50.2:rocm71+rocm72+rocm714+rocm715:gfx1100", TRI_YES, "libbitsandbytes_rocm72.so",
          "gfx1100" },
        { "7.0.51831", "0.50.2:rocm64+rocm714+rocm72:gfx1100", TRI_YES, "libbitsandbytes_rocm72.so",
          "gfx1100" },
        { "6.3.42133", "0.50.0:rocm60+rocm62+rocm64+rocm70:gfx1100", TRI_YES, "libbitsandbytes_rocm62.so",
          "gfx1100" },
        { "7.14.60850", "0.50.1:rocm70+rocm713:gfx1100", TRI_YES, "libbitsandbytes_rocm713.so", "gfx1100" },
        { "8.0.1", "0.50.1:rocm70+rocm713:gfx1100", TRI_NO, "7.0, 7.13", "" },
        { "6.4.43484", "0.44.0:cuda128:gfx1100", TRI_NO, "no library for ROCm", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(machine_release) struct machine t = machine_new();
        char options[256];
        snprintf(options, sizeof(options), "--hip %s --bnb %s", rows[i].hip, rows[i].bnb);
        machine_make(&t, options);
        const struct torch_facts *p = find(&t);
        REQUIRE(p);
        CHECK_HAS(rows[i].bnb, p->bitsandbytes.version.s);
        CHECK_INT(p->bitsandbytes.fits, rows[i].fits);
        CHECK_HAS(p->bitsandbytes.why, rows[i].why);
        CHECK_STR(machine_names(&p->bitsandbytes.targets), rows[i].targets);
    }
}

static void the_user_may_choose_the_library(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--hip 7.2.1 --bnb 0.50.0:rocm64+rocm71+rocm72:gfx1100");
    static const char *const env[] = { "PATH=/usr/bin", "BNB_ROCM_VERSION=71", NULL };
    const struct torch_facts *p = find_in(&t, env);
    REQUIRE(p);
    CHECK_INT(p->bitsandbytes.fits, TRI_YES);
    CHECK_HAS(p->bitsandbytes.why, "rocm71");
}

static void damaged_library(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--bnb 0.49.0:rocm64:gfx1100");
    machine_put(&t, SITE "bitsandbytes/libbitsandbytes_rocm64.so", "not a library");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK_INT(p->bitsandbytes.fits, TRI_NO);
    REQUIRE(p->problems.n == 1);
    CHECK_HAS(p->problems.text[0], "libbitsandbytes_rocm64.so: not an ELF file");
}

static void triton_under_all_its_names(void)
{
    static const char *const names[] = { "triton", "pytorch_triton_rocm", "pytorch-triton-rocm",
                                         "triton_rocm", "Pytorch.Triton_ROCm" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CLEANUP(machine_release) struct machine t = machine_new();
        char options[256];
        snprintf(options, sizeof(options), "--triton 3.5.1+gitbfeb0668 --triton-name %s", names[i]);
        machine_make(&t, options);
        const struct torch_facts *p = find(&t);
        REQUIRE(p);
        CHECK_STR(p->triton.version.s, "3.5.1+gitbfeb0668");
        CHECK_INT(p->triton.parsed.part[1], 5);
        CHECK_INT(p->triton.fits, TRI_YES);
    }
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "");
    machine_put(&t, SITE "triton/__init__.py", "\"\"\"isort\"\"\"\n__version__ = '3.4.0'\n");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK_STR(p->triton.version.s, "3.4.0");
    CHECK_INT(p->triton.fits, TRI_NO);
    CHECK_HAS(p->triton.why, "backends/amd");
}

static void flash_attention_of_three_kinds(void)
{
    static const struct {
        const char *option, *why;
        enum tri fits;
        size_t n;
    } rows[] = {
        { "--flash-attn 2.8.3:rocm --targets gfx90a,gfx942", "built for ROCm", TRI_YES, 2 },
        { "--flash-attn 2.8.3:cuda", "built for CUDA", TRI_NO, 0 },
        { "--flash-attn 2.8.3:none", "Triton backend", TRI_YES, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(machine_release) struct machine t = machine_new();
        machine_make(&t, rows[i].option);
        const struct torch_facts *p = find(&t);
        REQUIRE(p);
        CHECK_STR(p->flash_attn.version.s, "2.8.3");
        CHECK_HAS(p->flash_attn.why, rows[i].why);
        CHECK_INT(p->flash_attn.fits, rows[i].fits);
        CHECK_INT(p->flash_attn.targets.n, rows[i].n);
    }
}

static void pure_python_always_fits(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--hip none --torch 2.9.1+cpu --accelerate 1.12.0 --bnb 0.49.0:rocm64:gfx1100");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK_STR(p->accelerate.version.s, "1.12.0");
    CHECK_INT(p->accelerate.fits, TRI_YES);
    CHECK_INT(p->bitsandbytes.fits, TRI_UNKNOWN);
    CHECK_HAS(p->bitsandbytes.why, "not a ROCm build");
    CHECK_STR(p->triton.version.s, NULL);
}

/* A package may be in another site of the same Python than torch is. */
static void packages_of_all_sites(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_make(&t, "--layout debian --torch 2.9.1+rocm6.4");
    machine_put(&t, "usr/local/lib/python3.11/dist-packages/accelerate-1.12.0.dist-info/METADATA", "");
    machine_put(&t, "usr/lib/python3/dist-packages/accelerate-0.21.0-py3.11.egg-info", "");
    const struct torch_facts *p = find(&t);
    REQUIRE(p);
    CHECK_STR(p->site, "/usr/lib/python3/dist-packages");
    CHECK_STR(p->accelerate.version.s, "1.12.0");
    unlink(machine_path(&t, "usr/local/lib/python3.11/dist-packages/accelerate-1.12.0.dist-info/METADATA"));
    rmdir(machine_path(&t, "usr/local/lib/python3.11/dist-packages/accelerate-1.12.0.dist-info"));
    p = find(&t);
    REQUIRE(p);
    CHECK_STR(p->accelerate.version.s, "0.21.0");
}

int main(void)
{
    RUN(which_library_bitsandbytes_loads);
    RUN(the_user_may_choose_the_library);
    RUN(damaged_library);
    RUN(triton_under_all_its_names);
    RUN(flash_attention_of_three_kinds);
    RUN(pure_python_always_fits);
    RUN(packages_of_all_sites);
    return check_done();
}
