/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "host/memory.h"
#include "host/runtimes.h"
#include "rules/remedy.h"
#include <string.h>

static const char *say_version(const struct check_ctx *l, struct version v)
{
    if (v.n < 3)
        return ctx_text(l, "%d.%d", v.part[0], v.n > 1 ? v.part[1] : 0);
    return ctx_text(l, "%d.%d.%d", v.part[0], v.part[1], v.part[2]);
}

static const struct rocm_facts *newest_rocm(const struct check_ctx *l)
{
    const struct rocm_facts *best = NULL;
    for (size_t i = 0; i < l->facts->n_rocms; i++)
        if (!best || version_compare(l->facts->rocms[i].parsed, best->parsed) > 0)
            best = &l->facts->rocms[i];
    return best;
}

static bool has_rocm_kind(const struct check_ctx *l, enum rocm_kind kind)
{
    for (size_t i = 0; i < l->facts->n_rocms; i++)
        if (l->facts->rocms[i].kind == kind)
            return true;
    return false;
}

struct finding check_rocm_present(const struct check_ctx *l)
{
    const struct torch_facts *t = l->torch;
    const struct rocm_facts *r = newest_rocm(l);
    if (t && t->build == TORCH_ROCM && t->therock && !has_rocm_kind(l, ROCM_WHEEL))
        return found(CHECK_FAIL, "rocm_sdk wheels are missing: this PyTorch loads ROCm from them",
                     "import torch fails without _rocm_sdk_core in the same site-packages", remedy_torch(l));
    if (t && t->build == TORCH_ROCM && t->hip_library.s)
        return found_ok(l, "PyTorch bundles ROCm %s; no system ROCm is needed",
                        say_version(l, ctx_torch_rocm(l)));
    if (r)
        return found_ok(l, "ROCm %s in %s", r->version.s ? r->version.s : "of unknown version", r->path);
    if (t && t->build == TORCH_ROCM)
        return found(CHECK_WARN, "libamdhip64 was not found for this PyTorch",
                     "the wheel bundles none, and no ROCm is installed", remedy_torch(l));
    if (!l->facts->root.live && !t)
        return found_unknown("no ROCm in this captured tree", "it may contain only the hardware's files",
                             NULL);
    return found_ok(l, "no ROCm is installed; PyTorch's ROCm wheels bundle their own");
}

struct finding check_rocm_floor(const struct check_ctx *l)
{
    const struct gfx_chip *c = l->chip;
    if (!c || !c->rocm_major)
        return found_skip("no ROCm version is known to be too old for this chip");
    struct version have = ctx_torch_rocm(l);
    const struct rocm_facts *r = newest_rocm(l);
    bool of_torch = have.n > 0;
    if (!of_torch && r)
        have = r->parsed;
    const char *floor = ctx_text(l, "%d.%d.%d", c->rocm_major, c->rocm_minor, c->rocm_patch);
    if (!have.n)
        return found_unknown(ctx_text(l, "the ROCm version is unknown; %s needs %s", c->gfx, floor),
                             c->support, NULL);
    /* A wheel states only major and minor. */
    if (have.n < 3 && c->rocm_patch && have.part[0] == c->rocm_major && have.part[1] == c->rocm_minor)
        return found_unknown(
            ctx_text(l, "ROCm %s: unknown whether it is %s or newer", say_version(l, have), floor),
            ctx_text(l, "%s is supported from %s, and the wheel does not state the patch level", c->gfx,
                     floor),
            NULL);
    if (version_at_least(have, c->rocm_major, c->rocm_minor, c->rocm_patch))
        return found_ok(l, "ROCm %s, and %s is supported from %s", say_version(l, have), c->gfx, floor);
    return found(CHECK_WARN,
                 ctx_text(l, "ROCm %s is older than %s, the first that supports %s", say_version(l, have),
                          floor, c->gfx),
                 "an older runtime may not know the chip, and then ignores it silently",
                 of_torch ? remedy_torch(l)
                          : "# https://rocm.docs.amd.com/projects/install-on-linux/en/latest/");
}

struct finding check_rocm_loaded(const struct check_ctx *l)
{
    const struct torch_facts *t = l->torch;
    if (!t || t->build != TORCH_ROCM)
        return found_skip("no ROCm build of PyTorch");
    if (!t->hip_library.s)
        return found_unknown("libamdhip64: unknown which one this PyTorch loads",
                             "the wheel bundles none, so the loader's search path decides",
                             "cairn doctor --probe");
    const struct rocm_facts *r = ctx_rocm_of(l, t->hip_library.s, strlen(t->hip_library.s));
    if (r && r->parsed.n && t->hip_parsed.n && r->parsed.part[0] != t->hip_parsed.part[0])
        return found(CHECK_FAIL,
                     ctx_text(l, "PyTorch is built for HIP %s but loads ROCm %s from %s", t->hip.s,
                              r->version.s, r->path),
                     "another major version has different symbols: expect an import error, or a crash later",
                     remedy_torch(l));
    return found_ok(l, "PyTorch loads %s", t->hip_library.s);
}

/* The runtime for cairn's own kernels; PyTorch does not use it. */
struct finding check_native_runtime(const struct check_ctx *l)
{
    if (!l->facts->n_runtimes) {
        if (!l->facts->root.live)
            return found_unknown("no HIP runtime in this captured tree",
                                 "it may contain only the hardware's files", NULL);
        return found(CHECK_WARN, "no HIP runtime was found: cairn train, bench and sample use the CPU",
                     "a ROCm build of PyTorch includes one that cairn can use", remedy_torch(l));
    }
    const struct hip_runtime *r = &l->facts->runtimes[0];
    if (!r->files.hiprtc)
        return found(CHECK_WARN, ctx_text(l, "libhiprtc is missing beside %s", r->hip),
                     "cairn train, bench and sample compile their kernels with it", remedy_torch(l));
    return found_ok(l, "cairn train, bench and sample use %s (%s)", r->hip, runtime_text(r, l->arena));
}

struct finding check_rocm_cwsr(const struct check_ctx *l)
{
    int64_t enabled;
    if (!ctx_is(l, "gfx1151"))
        return found_skip("not gfx1151");
    struct version v = ctx_torch_rocm(l);
    if (ctx_param(l, "amdgpu", "cwsr_enable", &enabled) && enabled == 0)
        return found_ok(l, "amdgpu.cwsr_enable=0: the runtime part of the context-save fix is not needed");
    if (!v.n)
        return found_unknown("context-save fix: unknown whether the runtime has it",
                             "no ROCm build of PyTorch was found", NULL);
    if (version_at_least(v, 7, 3, 0) || (v.n > 2 && version_at_least(v, 7, 2, 1)))
        return found_ok(l, "ROCm %s has the runtime part of the context-save fix", say_version(l, v));
    if (v.n < 3 && version_at_least(v, 7, 2, 0))
        return found_unknown(
            ctx_text(l, "ROCm %s: unknown whether it has the context-save fix", say_version(l, v)),
            "7.2.1 has it, 7.2.0 does not, and the wheel does not state the patch level", NULL);
    return found(
        CHECK_WARN, ctx_text(l, "ROCm %s lacks the runtime part of the context-save fix", say_version(l, v)),
        "with a fixed kernel the runtime must also allocate the larger area (7.2.1); without that, compute "
        "on gfx1151 can hang",
        remedy_torch(l));
}

/* Releases that are known to fail on a chip. from and below are versions of the ROCm that torch was built
 * with; kernel is the first affected version. */
static const struct bad_rocm {
    const char *gfx;
    int from[3], below[3];
    int kernel[2];
    enum check_status status;
    const char *why;
} bad_rocms[] = {
    { "gfx1151",
      { 7, 10, 0 },
      { 7, 11, 0 },
      { 7, 2 },
      CHECK_FAIL,
      "its HSA runtime crashes at startup on Linux 7.2 and newer; 7.13 works" },
    { "gfx1151",
      { 7, 0, 0 },
      { 7, 1, 0 },
      { 0, 0 },
      CHECK_WARN,
      "torch.compile crashed whole systems with ROCm 7.0.2" },
    { "gfx90c",
      { 0, 0, 0 },
      { 6, 1, 0 },
      { 0, 0 },
      CHECK_WARN,
      "copies hang on this chip; HSA_ENABLE_SDMA=0 avoids the hang, ROCm 6.1 fixes it" },
};

static bool bad_row_fits(const struct check_ctx *l, const struct bad_rocm *b, struct version v)
{
    struct version k = l->facts->host.kernel_version;
    if (!ctx_is(l, b->gfx) || !version_at_least(v, b->from[0], b->from[1], b->from[2]))
        return false;
    if (!version_below(v, b->below[0], b->below[1], b->below[2]))
        return false;
    return !b->kernel[0] || version_at_least(k, b->kernel[0], b->kernel[1], 0);
}

struct finding check_rocm_known_bad(const struct check_ctx *l)
{
    struct version v = ctx_torch_rocm(l);
    if (!l->gpu || !l->torch || l->torch->build != TORCH_ROCM)
        return found_skip("no ROCm build of PyTorch");
    if (!v.n)
        return found_unknown("the ROCm version of this PyTorch is unknown", NULL, NULL);
    v.pre = false; /* a nightly of 7.10 has the bugs of 7.10 */
    for (size_t i = 0; i < ARRAY_LEN(bad_rocms); i++)
        if (bad_row_fits(l, &bad_rocms[i], v))
            return found(bad_rocms[i].status,
                         ctx_text(l, "ROCm %s on %s", say_version(l, v), bad_rocms[i].gfx), bad_rocms[i].why,
                         remedy_torch(l));
    return found_ok(l, "no known bug of ROCm %s on this chip", say_version(l, v));
}

/* The runtime pins the source of a copy, which is slow for a mapped file. Whether it is slow here is unknown
 * in advance, so the line only says what to do. */
struct finding check_mapped_weights(const struct check_ctx *l)
{
    struct version v = ctx_torch_rocm(l);
    if (!l->gpu || !l->torch || l->torch->build != TORCH_ROCM)
        return found_skip("no ROCm build of PyTorch");
    const struct gfx_chip *c = gfx_find(l->gpu->gfx.s);
    bool here = c && c->slow_mapped;
    if (here && !v.n)
        return found_unknown("the ROCm version of this PyTorch is unknown", NULL, NULL);
    if (!here || !version_at_least(v, 7, 0, 0))
        return found_ok(l, "no report of slow loading of mapped weights on this chip with this ROCm");
    return found_ok(l,
                    "if mapped weights load slowly, as reported for %s with ROCm 7: cairn run "
                    "--preload=+stage -- COMMAND",
                    l->gpu->gfx.s);
}

/* HIP 7.13 reports half of RAM as the total of an integrated GPU, whatever it may map. */
struct finding check_hip_memory(const struct check_ctx *l)
{
    const struct num *ram = &l->facts->host.memory_total_bytes;
    struct version v = ctx_torch_rocm(l);
    if (!l->gpu || l->gpu->kind != GPU_INTEGRATED || memory_is_carve_out(l->gpu))
        return found_skip("no GPU that shares the host's memory");
    if (!v.n || !ram->from || !l->gpu->usable_bytes.from)
        return found_unknown("HIP: unknown whether it reports this GPU's memory correctly",
                             "the ROCm of this PyTorch, or the memory size, is unknown", NULL);
    v.pre = false; /* a nightly of 7.13 has the bugs of 7.13 */
    if (!version_at_least(v, 7, 13, 0) || l->gpu->usable_bytes.v / 11 * 10 < ram->v / 2)
        return found_ok(l, "no report that ROCm %s misreports this GPU's memory", say_version(l, v));
    return found(
        CHECK_WARN,
        ctx_text(l, "ROCm %s may report only half of RAM to trainers; the GPU can use %s", say_version(l, v),
                 ctx_bytes(l, l->gpu->usable_bytes.v)),
        "trainers that plan by the reported total choose too small a job; cairn's preload library reports "
        "the real total",
        "cairn run --preload=+memory -- COMMAND");
}
