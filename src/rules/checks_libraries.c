/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "base/str.h"
#include "rules/remedy.h"

/* The libraries beside PyTorch matter only if it is a ROCm build and the GPU's target is known. */
static const char *library_target(const struct check_ctx *l)
{
    return l->torch && l->torch->build == TORCH_ROCM ? ctx_target(l) : NULL;
}

static const char skipped[] = "no ROCm build of PyTorch, or no GPU with a known target";

/* Findings that differ only in the library's name and in the effect of missing kernels. */
static struct finding judge_library(const struct check_ctx *l, const char *name, const struct targets *t,
                                    enum check_status without, const char *why, const char *remedy)
{
    const char *target = library_target(l);
    if (!t->from)
        return found_unknown(ctx_text(l, "%s: unknown whether it has kernels for %s", name, target),
                             "its files were not found", NULL);
    if (ctx_has_code(t, target))
        return found_ok(l, "%s has kernels for %s", name, target);
    return found(without, ctx_text(l, "%s has no kernels for %s", name, target), why, remedy);
}

struct finding check_rocblas(const struct check_ctx *l)
{
    if (!library_target(l))
        return found_skip(skipped);
    return judge_library(
        l, "rocBLAS", &l->torch->rocblas, CHECK_FAIL,
        "it prints \"Cannot read TensileLibrary\" and aborts the process at the first matmul",
        remedy_torch(l));
}

struct finding check_hipblaslt(const struct check_ctx *l)
{
    if (!library_target(l))
        return found_skip(skipped);
    if (l->chip && !l->chip->matrix_core)
        return found_skip("hipBLASLt supports only chips with matrix cores");
    return judge_library(
        l, "hipBLASLt", &l->torch->hipblaslt, CHECK_WARN,
        "PyTorch then uses rocBLAS for everything: slower matmuls, no fused bias or activation",
        remedy_torch(l));
}

struct finding check_aotriton(const struct check_ctx *l)
{
    const char *target = library_target(l);
    if (!target)
        return found_skip(skipped);
    if (l->chip && !l->chip->matrix_core)
        return found_skip("AOTriton supports only chips with matrix cores");
    struct finding f = judge_library(
        l, "AOTriton", &l->torch->aotriton, CHECK_WARN,
        "fused attention is not available: PyTorch falls back to math attention, which is slow and uses far "
        "more memory",
        remedy_torch(l));
    const struct plan_var *v =
        plan_find(l->plan->set, l->plan->n_set, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL");
    if (f.status != CHECK_OK || !v || facts_env(l->facts, v->name))
        return f;
    return found(CHECK_WARN, ctx_text(l, "fused attention for %s is available but disabled", target), v->why,
                 ctx_text(l, "export %s=%s", v->name, v->value));
}

struct finding check_miopen_db(const struct check_ctx *l)
{
    const char *mode = ctx_planned(l, "MIOPEN_FIND_MODE");
    if (!library_target(l))
        return found_skip(skipped);
    struct finding f = judge_library(
        l, "MIOpen", &l->torch->miopen, CHECK_WARN,
        "its database has no tuned convolutions for this chip, so MIOpen searches during the first epoch: "
        "minutes for a VAE or UNet. FAST skips the search, and suits jobs with many image sizes",
        "cairn run --with MIOPEN_FIND_MODE=FAST -- COMMAND");
    if (f.status == CHECK_WARN && mode)
        return found_ok(l, "%s; MIOPEN_FIND_MODE=%s is set", f.fact, mode);
    return f;
}

struct finding check_miopen_version(const struct check_ctx *l)
{
    if (!ctx_is(l, "gfx1151") || !l->torch || l->torch->build != TORCH_ROCM)
        return found_skip("not gfx1151 with a ROCm build of PyTorch");
    const char *v = l->torch->miopen_version.s;
    return found_unknown(
        v ? ctx_text(l, "MIOpen %s", v) : "the MIOpen version is unknown",
        "an unconfirmed claim says that 3.5.1 or newer fixes batch-normalisation errors on gfx1151; no "
        "public source confirms or refutes it",
        NULL);
}

/* Is a cache folder ("3.4.0.a85ca8a54") of this version ("3.4.0")? */
static bool cache_is_of(const char *folder, struct version v)
{
    struct version of;
    return version_parse(folder, &of) && of.part[0] == v.part[0] && of.part[1] == v.part[1] &&
           of.part[2] == v.part[2];
}

struct finding check_miopen_cache(const struct check_ctx *l)
{
    const struct miopen_cache *cache = &l->facts->miopen_cache;
    CLEANUP(str_release) struct str names = { 0 }, paths = { 0 };
    struct version used;
    if (!library_target(l) || !cache->n_versions)
        return found_skip("MIOpen's cache is empty");
    if (!l->torch->miopen_version.s || !version_parse(l->torch->miopen_version.s, &used))
        return found_unknown("MIOpen's cache: unknown whether it matches the MIOpen in use",
                             "the MIOpen version is unknown", NULL);
    for (size_t i = 0; i < cache->n_versions; i++) {
        if (cache_is_of(cache->version[i], used))
            continue;
        str_addf(&names, " %s", cache->version[i]);
        str_addf(&paths, " %s", ctx_shell_word(l, ctx_text(l, "%s/%s", cache->dir, cache->version[i])));
    }
    if (!names.len)
        return found_ok(l, "MIOpen's cache is from %s, the version in use", l->torch->miopen_version.s);
    return found(CHECK_WARN, ctx_text(l, "MIOpen's cache contains folders of other versions:%s", names.s),
                 "leftovers of an upgrade; clearing MIOpen's caches ended a series of crashes on gfx1151",
                 ctx_text(l, "rm -r%s    # and the old files in ~/.config/miopen", paths.s));
}

static const char *say_package(const struct check_ctx *l, const char *name, const struct package_facts *p)
{
    return ctx_text(l, "%s %s", name, p->version.s);
}

/* The part that all Python packages with binary code share. */
static struct finding judge_package(const struct check_ctx *l, const char *name,
                                    const struct package_facts *p, const char *remedy)
{
    const char *gfx = l->gpu ? l->gpu->gfx.s : NULL;
    if (p->fits == TRI_NO)
        return found(CHECK_WARN, ctx_text(l, "%s does not fit this PyTorch", say_package(l, name, p)), p->why,
                     remedy);
    if (gfx && p->targets.from && p->targets.n && !ctx_has_code(&p->targets, gfx))
        return found(CHECK_WARN, ctx_text(l, "%s has no code for %s", say_package(l, name, p), gfx),
                     "its kernels fail with \"invalid device function\" on this GPU", remedy);
    if (p->fits == TRI_UNKNOWN)
        return found_unknown(ctx_text(l, "%s: unknown whether it fits", say_package(l, name, p)), p->why,
                             NULL);
    return found_ok(l, "%s", say_package(l, name, p));
}

struct finding check_bitsandbytes(const struct check_ctx *l)
{
    const struct package_facts *p = l->torch ? &l->torch->bitsandbytes : NULL;
    if (!p || !p->version.s)
        return found_skip("bitsandbytes is not installed");
    return judge_package(l, "bitsandbytes", p,
                         remedy_pip(l, "--upgrade bitsandbytes    # 0.50 or newer has ROCm libraries"));
}

struct finding check_rocminfo(const struct check_ctx *l)
{
    const char *target = library_target(l);
    if (!target || !l->torch->bitsandbytes.version.s)
        return found_skip("nothing here needs rocminfo");
    for (size_t i = 0; i < l->facts->n_rocms; i++)
        if (l->facts->rocms[i].has_rocminfo)
            return found_ok(l, "rocminfo is in %s", l->facts->rocms[i].path);
    return found(
        CHECK_WARN, "rocminfo was not found",
        "bitsandbytes runs it to find the GPU's target; without it bitsandbytes prints errors and continues",
        remedy_install(l, "rocminfo"));
}

struct finding check_triton(const struct check_ctx *l)
{
    if (!l->torch || l->torch->build != TORCH_ROCM)
        return found_skip("no ROCm build of PyTorch");
    const struct package_facts *p = &l->torch->triton;
    if (!p->version.s)
        return found(CHECK_WARN, "Triton is not installed",
                     "torch.compile and many fused kernels need it; PyTorch's wheel installs it",
                     remedy_torch(l));
    return judge_package(l, "Triton", p, remedy_torch(l));
}

struct finding check_flash_attn(const struct check_ctx *l)
{
    const struct package_facts *p = l->torch ? &l->torch->flash_attn : NULL;
    static const char name[] = "FLASH_ATTENTION_TRITON_AMD_ENABLE";
    if (!p || !p->version.s)
        return found_skip("flash-attn is not installed");
    struct finding f =
        judge_package(l, "flash-attn", p, remedy_pip(l, "--no-build-isolation --force-reinstall flash-attn"));
    const struct plan_var *v = plan_find(l->plan->set, l->plan->n_set, name);
    if (f.status == CHECK_WARN || !v)
        return f;
    return found(
        CHECK_WARN,
        ctx_text(l, "%s would use its CK kernels on this Radeon", say_package(l, "flash-attn", p)),
        "RDNA needs its Triton kernels; the switch must be the exact word TRUE, at install and at run time",
        ctx_text(l, "export %s=%s", v->name, v->value));
}

struct finding check_accelerate(const struct check_ctx *l)
{
    if (!l->torch)
        return found_skip("no PyTorch");
    const struct package_facts *p = &l->torch->accelerate;
    if (!p->version.s)
        return found(CHECK_WARN, "accelerate is not installed", "most trainers start through it",
                     remedy_pip(l, "accelerate"));
    return judge_package(l, "accelerate", p, remedy_pip(l, "--upgrade accelerate"));
}

struct finding check_rccl(const struct check_ctx *l)
{
    size_t alike = 0;
    for (size_t i = 0; l->gpu && i < l->facts->n_gpus; i++)
        alike += l->facts->gpus[i].rocm_capable && str_eq(l->facts->gpus[i].gfx.s, l->gpu->gfx.s);
    if (alike < 2 || !l->gpu->gfx.s)
        return found_skip("fewer than two GPUs of the same kind");
    const struct gfx_chip *c = gfx_find(l->gpu->gfx.s);
    if (!c || !c->no_rccl)
        return found_ok(l, "RCCL is built for %s", l->gpu->gfx.s);
    return found(CHECK_WARN, ctx_text(l, "RCCL is not built for %s", l->gpu->gfx.s),
                 "multi-GPU training falls back to gloo, through the CPU",
                 "accelerate launch --num_processes 1 TRAIN.py");
}
