/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/fast_paths.h"

#include "base/str.h"
#include "rules/env_rules.h"
#include "rules/check_ctx.h"

/* Decided by the chip, the wheel's files, and the switch for chips that AOTriton calls experimental. */
static enum tri find_attention(const struct check_ctx *l, const char *target)
{
    const struct gfx_chip *c = gfx_find(target);
    if (c && !c->matrix_core)
        return TRI_NO;
    enum tri files = env_targets_cover(&l->torch->aotriton, target);
    const char *set = ctx_planned(l, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL");
    return files == TRI_YES && str_eq(set, "0") ? TRI_UNKNOWN : files;
}

struct fast_paths fast_paths_find(const struct facts *f, const struct plan *p, struct arena *a)
{
    struct check_ctx l = check_ctx_of(f, p, a);
    struct fast_paths out = { 0 };
    if (!l.torch || l.torch->build != TORCH_ROCM || !ctx_target(&l))
        return out;
    out.target = ctx_target(&l);
    out.rocblas = env_targets_cover(&l.torch->rocblas, out.target);
    /* It supports chips with matrix cores only, whatever files its folder contains. */
    const struct gfx_chip *c = gfx_find(out.target);
    out.hipblaslt = c && !c->matrix_core ? TRI_NO : env_targets_cover(&l.torch->hipblaslt, out.target);
    out.attention = find_attention(&l, out.target);
    return out;
}

const char *fast_paths_text(const struct fast_paths *p, struct arena *a)
{
    CLEANUP(str_release) struct str s = { 0 };
    bool known = p->rocblas != TRI_UNKNOWN || p->hipblaslt != TRI_UNKNOWN;
    if (!p->target)
        return NULL;
    if (known)
        str_addf(&s, "matrix kernels for %s: %s%s%s", p->target, p->rocblas == TRI_YES ? "rocBLAS" : "",
                 p->rocblas == TRI_YES && p->hipblaslt == TRI_YES ? ", " : "",
                 p->hipblaslt == TRI_YES ? "hipBLASLt"
                 : p->rocblas == TRI_YES ? ""
                                         : "none");
    if (p->attention != TRI_UNKNOWN)
        str_addf(&s, "%sfused attention: %s", s.len ? "; " : "", p->attention == TRI_YES ? "on" : "none");
    return s.len ? arena_strdup(a, s.s) : NULL;
}
