/* SPDX-License-Identifier: Apache-2.0
 * Whether a fix applies to the case: the conditions of issue_fixes. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"
#include "base/str.h"
#include <string.h>

static bool is_on(const char *value)
{
    return value && !str_eq(value, "0") && *value;
}

static bool attention_waits(const struct judgement *j)
{
    return !is_on(judge_var(j, LOG_AOTRITON)) && j->d->hits[ISSUE_ATTENTION][WEIGHT_WARN][WORDING_ROCM].seen;
}

/* `cairn run` configures the preload library with these. */
static bool preload_has(const struct judgement *j, const char *name)
{
    return j->ctx->env && str_env(j->ctx->env, name);
}

/* The integrated GPU is visible, and the log does not say that the card lacks code. */
static bool may_hide(const struct judgement *j)
{
    return j->igpu && (!j->log->failing[0] || str_eq(j->log->failing, j->igpu->gfx));
}

/* The plain override renames every GPU: does it fit the integrated one as well? */
static bool override_suits_all(const struct judgement *j)
{
    const struct gfx_chip *as = judge_stand_in(j);
    return as && j->igpu && gfx_is_safe_relative(as, j->igpu);
}

/* The wheel is known, and has code that can replace the GPU's own. */
static bool is_known_to_need_override(const struct judgement *j)
{
    return j->wheel.code.from && judge_needs_override(j);
}

/* A PyTorch without code for the chip has nothing to run without an override. */
static bool may_need_none(const struct judgement *j)
{
    return j->carried != TRI_NO && !is_known_to_need_override(j);
}

/* A path to a ROCm, before the one that PyTorch bundles: for a distribution's build it may be the only one.
 * */
static bool mixes_rocm(const struct judgement *j)
{
    const char *path = judge_var(j, LOG_LIBRARY_PATH);
    const struct torch_facts *t = j->torch;
    bool own = !t || !t->hip_library.s || t->therock || str_starts(t->hip_library.s, t->site);
    return path && own && match_any(path, strlen(path), "rocm");
}

static bool is_other_build(const struct judgement *j)
{
    enum torch_build b = j->log->torch[0] ? j->log->build : j->torch ? j->torch->build : TORCH_ROCM;
    return b == TORCH_CPU || b == TORCH_CUDA;
}

const char *diagnose_lacks_attention(const struct judgement *j)
{
    static const struct {
        const char *words, *package;
    } rows[] = {
        { "flash_attn|flash-attn|FlashAttention2", "flash_attn" },
        { "xformers|memory_efficient_attention_", "xformers" },
        { "sageattention", "sageattention" },
    };
    for (size_t i = 0; j->verdict == ISSUE_ATTENTION && i < ARRAY_LEN(rows); i++)
        if (judge_says(j, j->verdict, rows[i].words))
            return rows[i].package;
    return NULL;
}

bool diagnose_lacks_bitsandbytes(const struct judgement *j)
{
    return j->verdict == ISSUE_BITSANDBYTES && judge_says(j, j->verdict, "No module named 'bitsandbytes'");
}

bool diagnose_lacks_triton(const struct judgement *j)
{
    return j->verdict == ISSUE_TRITON &&
           judge_says(j, j->verdict, "No module named|working triton installation|TritonMissing");
}

/* Nothing on Windows reads the variables of the HSA runtime, the ELF loader, RCCL and cairn's preload
 * library. */
static bool is_of_linux(const char *names)
{
    static const char *const prefixes[] = { "HSA_", "ROCR_", "LD_", "NCCL_", "CAIRN_" };
    for (size_t i = 0; names && i < ARRAY_LEN(prefixes); i++)
        if (str_starts(names, prefixes[i]))
            return true;
    return false;
}

static bool os_fits(const struct judgement *j, const struct issue_fix *f)
{
    if (j->windows)
        return f->os != FIX_ON_LINUX && !is_of_linux(f->set) && !is_of_linux(f->unset);
    return f->os != FIX_ON_WINDOWS;
}

/* Without a default: the compiler then reports a missing condition. */
static bool is_met(const struct judgement *j, enum fix_when when)
{
    switch (when) {
    case FIX_ALWAYS:
    case FIX_BY_WATCH: /* diagnose_applies has checked it */
        return true;

    /* What is set, and what is not. */
    case FIX_EXPANDABLE:
        return judge_expandable(j);
    case FIX_NO_CACHING:
        return judge_var(j, LOG_NO_CACHING_HIP) || judge_var(j, LOG_NO_CACHING_CUDA);
    case FIX_SDMA_ON:
        return !str_eq(judge_var(j, LOG_SDMA), "0");
    case FIX_INTERRUPT_ON:
        return !str_eq(judge_var(j, LOG_INTERRUPT), "0");
    case FIX_AOTRITON_ON:
        return is_on(judge_var(j, LOG_AOTRITON));
    case FIX_AOTRITON_OFF:
        return attention_waits(j) || (j->verdict == ISSUE_ATTENTION && !is_on(judge_var(j, LOG_AOTRITON)) &&
                                      !diagnose_lacks_attention(j));
    case FIX_OVERRIDDEN:
        return j->override && j->carried == TRI_NO;
    case FIX_OVERRIDE_SET:
        return j->override && may_need_none(j);
    case FIX_OVERRIDE_FLAWED:
        return j->override && may_need_none(j) && j->override->flaw != OVERRIDE_FINE &&
               j->override->flaw != OVERRIDE_SAME;
    case FIX_LIBRARY_PATH:
        return judge_var(j, LOG_LIBRARY_PATH) != NULL;
    case FIX_SECOND_ROCM:
        return mixes_rocm(j);
    case FIX_HIPBLASLT_ON:
        return !str_eq(judge_var(j, LOG_HIPBLASLT), "0");
    case FIX_P2P_ON:
        return !is_on(judge_var(j, LOG_P2P));

    /* GPUs, PyTorch, and the system around them. */
    case FIX_NOT_CARRIED:
        return j->carried != TRI_YES;
    case FIX_NEEDS_OVERRIDE:
        return is_known_to_need_override(j);
    case FIX_MAY_NEED_NONE:
        return may_need_none(j);
    case FIX_LACKS_CODE:
        return j->carried == TRI_NO;
    case FIX_CARRIED_ELSEWHERE:
        return j->carried == TRI_YES && !j->ctx->env && !j->same_machine && !j->override;
    case FIX_NO_CHIP:
        return !j->chip;
    case FIX_HIDE_FIRST:
        return may_hide(j) && !override_suits_all(j);
    case FIX_HIDE_LATER: /* unless the plan hides it together with the override */
        return may_hide(j) && override_suits_all(j) &&
               !plan_find(j->plan.set, j->plan.n_set, plan_selectors[0]);
    case FIX_SEVERAL_GPUS:
        return j->igpu != NULL;
    case FIX_STRIX_HALO:
        return j->chip && !j->family && str_eq(j->chip->gfx, "gfx1151");
    case FIX_CPU_BUILD:
        return is_other_build(j);
    case FIX_NOT_IN_CONTAINER:
        return !j->same_machine || !j->ctx->facts->host.container.s;
    case FIX_MAYBE_CONTAINER:
        return !j->same_machine || j->ctx->facts->host.container.s;
    case FIX_LIMIT_LOW:
        return !j->windows && !judge_by_guard(j) && !diagnose_limit_suffices(j);
    case FIX_LIMIT_UNKNOWN:
        return !j->windows && !judge_by_guard(j) && !diagnose_knows_ram(j);

    /* What the log says, or leaves open. */
    case FIX_NO_STACK:
        return !j->log->stack.n && !j->log->stack.call;
    case FIX_NOT_STARTING:
        return !j->log->stack.call;
    case FIX_ATTENTION_PACKAGE:
        return diagnose_lacks_attention(j) != NULL;
    case FIX_FLASH:
        return str_eq(diagnose_lacks_attention(j), "flash_attn");
    case FIX_ATTENTION_OWN:
        return !diagnose_lacks_attention(j);
    case FIX_NO_TRITON:
        return diagnose_lacks_triton(j);
    case FIX_TRITON_THERE:
        return !diagnose_lacks_triton(j);
    case FIX_VENDOR_UNSURE:
        return j->if_amd != ISSUE_UNKNOWN;
    case FIX_ACCELERATE:
        return j->log->accelerate;
    case FIX_GLOO:
        return judge_says(j, j->verdict, "gloo");

    /* What cairn itself did and saw. */
    case FIX_IN_COPY:
        return j->ctx->in_copy && preload_has(j, "CAIRN_PRELOAD");
    case FIX_PRELOAD:
        return !j->ctx->in_copy && preload_has(j, "CAIRN_PRELOAD");
    case FIX_STAGE:
        return !j->windows && !preload_has(j, "CAIRN_PRELOAD");
    case FIX_LOADING:
        return judge_is_loading(j) && preload_has(j, "CAIRN_PRELOAD");
    case FIX_LOADING_STAGE:
        return judge_is_loading(j) && !j->windows && !preload_has(j, "CAIRN_PRELOAD");
    case FIX_PRELOAD_SHARED:
        return preload_has(j, "CAIRN_PRELOAD") && preload_has(j, "CAIRN_PRELOAD_BUDGET");
    case FIX_BY_GUARD:
        return judge_by_guard(j);
    case FIX_NOT_BY_GUARD:
        return !judge_by_guard(j);
    case FIX_MAY_HANG:
        return judge_may_hang(j);
    case FIX_END_UNKNOWN:
        return j->ctx->exit_code < 0 && !j->ctx->hung;
    case FIX_NO_DUMP:
        return !j->ctx->hang_file;
    }
    return false;
}

bool diagnose_applies(const struct judgement *j, const struct issue_fix *f)
{
    return os_fits(j, f) && judge_by_watch(j) == (f->when == FIX_BY_WATCH) && is_met(j, f->when);
}
