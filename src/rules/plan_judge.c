/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/plan_work.h"

#include "base/str.h"
#include "rules/env_sources.h"
#include <string.h>
#include <strings.h>

/* Any value except 0, a word for no, and the empty string. */
static bool is_on(const char *text)
{
    return *text && strcmp(text, "0") && strcasecmp(text, "false") && strcasecmp(text, "off") &&
           strcasecmp(text, "no");
}

static void accept_by_row(struct work *w, struct env_var *v)
{
    work_accept(w, v, "%s%s%s", v->row->effect, v->row->advice ? "; " : "",
                v->row->advice ? v->row->advice : "");
}

/* Whether a spelling and value disable caching depends on the torch version. */
static void judge_no_caching(struct work *w, struct env_var *v)
{
    bool cuda_name = strstr(v->name, "CUDA"), one = str_eq(v->value, "1");
    struct version torch = w->s.torch;
    if (cuda_name && version_below(torch, 2, 6, 0))
        work_accept(w, v, "not read: torch reads this spelling on ROCm from 2.6 on");
    else if (!one && version_at_least(torch, 2, 7, 0))
        work_accept(w, v, "no effect: from torch 2.7 on only the value 1 counts");
    else if (w->o->debug)
        work_accept(w, v, "kept for debugging: no caching allocator, so the driver allocates each tensor");
    else if (!one && torch.n)
        work_refuse(w, v, DOC_ALLOCATOR,
                    "in this torch any value, even 0, disables the caching allocator: each tensor costs a "
                    "synchronous hipMalloc, and graph capture breaks");
    else
        work_refuse(w, v, DOC_ALLOCATOR,
                    "disables the caching allocator: each tensor costs a synchronous hipMalloc and hipFree; "
                    "it does not help on shared memory, where cached blocks are real");
}

static void judge_serialize(struct work *w, struct env_var *v)
{
    uint64_t mode;
    if (!cairn_parse_u64(v->value, &mode) || mode > 3)
        work_refuse(w, v, DOC_DEBUGGING, "takes 0, 1, 2 or 3");
    else if (mode && !w->o->debug)
        work_refuse(w, v, DOC_DEBUGGING, "waits around every %s, which is slow; for debugging only (--debug)",
                    strstr(v->name, "COPY") ? "copy" : "kernel");
    else if (!mode && w->o->debug)
        work_refuse(w, v, DOC_DEBUGGING, "0 contradicts --debug");
    else
        work_accept(w, v, mode ? "kept for debugging" : "off, as by default: no effect");
}

static void judge_launch_blocking(struct work *w, struct env_var *v)
{
    if (is_on(v->value) && !w->o->debug)
        work_refuse(w, v, DOC_DEBUGGING,
                    "waits after every kernel, which is slow; for debugging only (--debug)");
    else if (!is_on(v->value) && w->o->debug)
        work_refuse(w, v, DOC_DEBUGGING, "%s contradicts --debug", v->value[0] ? v->value : "an empty value");
    else
        work_accept(w, v,
                    is_on(v->value) ? "kept for debugging, although AMD_SERIALIZE_KERNEL=3 shows more"
                                    : "off, as by default: no effect");
}

static void judge_log_level(struct work *w, struct env_var *v)
{
    uint64_t level;
    if (!cairn_parse_u64(v->value, &level))
        work_refuse(w, v, DOC_DEBUGGING, "must be a number");
    else if (!level && w->o->debug)
        work_refuse(w, v, DOC_DEBUGGING, "0 contradicts --debug");
    else
        accept_by_row(w, v);
}

static void judge_xnack(struct work *w, struct env_var *v)
{
    enum gfx_family family = w->s.chip ? w->s.chip->family : GFX_GCN;
    if (w->s.chip && family >= GFX_RDNA2)
        work_refuse(w, v, SRC_HSA_ISA, "no effect: %s has no page-fault retry", w->s.gfx);
    else if (str_eq(v->value, "1") && family >= GFX_CDNA && family <= GFX_CDNA4)
        work_accept(w, v, "page-fault retry; needs code built with xnack+, which wheels may lack");
    else
        accept_by_row(w, v);
}

/* Can hipBLASLt start on this chip? Decided by the wheel's files, else by the chip. */
static enum tri has_hipblaslt(const struct work *w)
{
    enum tri files = w->s.lists ? env_targets_cover(&w->s.lists->hipblaslt, w->s.gfx) : TRI_UNKNOWN;
    if (files || !w->s.chip)
        return files;
    return str_list_has("GCN Vega RDNA1 RDNA2", ' ', gfx_family_name(w->s.chip->family)) ? TRI_NO
                                                                                         : TRI_UNKNOWN;
}

static void judge_rocblas_lt(struct work *w, struct env_var *v)
{
    bool one = str_eq(v->value, "1");
    if (w->o->windows)
        work_refuse(w, v, DOC_HIPBLASLT, "not read: rocBLAS for Windows is built without hipBLASLt");
    else if ((v->fatal = one && has_hipblaslt(w) == TRI_NO))
        work_refuse_by_torch(w, v, DOC_HIPBLASLT,
                             "hipBLASLt has no code for %s: rocBLAS aborts the process when it cannot start",
                             w->s.gfx);
    else if (version_below(w->s.rocm, 6, 3, 0))
        work_accept(w, v, "not read before ROCm 6.3");
    else if (!one)
        work_accept(w, v, "rocBLAS never uses hipBLASLt");
    else if (w->s.chip && w->s.chip->slow_lt_gradients)
        work_accept(w, v,
                    "faster matmuls in the forward pass on %s, but weight gradients were measured up to 3.7 "
                    "times slower: compare a few steps with and without",
                    w->s.gfx);
    else
        work_accept(w, v, "rocBLAS hands matmuls to hipBLASLt; no benefit where torch calls it directly");
}

static void judge_torch_lt(struct work *w, struct env_var *v)
{
    if (str_eq(v->value, "1") && has_hipblaslt(w) == TRI_NO)
        work_accept(w, v, "hipBLASLt has no code for %s: torch warns and uses hipBLAS", w->s.gfx);
    else
        accept_by_row(w, v);
}

/* Whether a rule would set this variable to this value here. */
static bool rule_wants(const struct work *w, const char *name, const char *value)
{
    for (const struct env_rule *r = env_rules(); r->name; r++)
        if (str_eq(r->name, name) && str_eq(r->value, value) && env_when_met(&r->when, &w->s))
            return true;
    return false;
}

static void judge_aotriton(struct work *w, struct env_var *v)
{
    if (str_eq(v->value, "0"))
        work_accept(w, v, "off by your choice%s",
                    rule_wants(w, v->name, "1") ? ": attention takes the slow math path on this chip" : "");
    else if (rule_wants(w, v->name, "1"))
        work_accept(w, v, "right: the bundled AOTriton calls this chip experimental");
    else if (!w->s.gfx || !w->s.aotriton.n)
        work_accept(
            w, v, "takes effect if the bundled AOTriton calls the chip experimental, which is unknown here");
    else
        work_accept(w, v, "no effect: %s is not on the experimental list of this AOTriton", w->s.gfx);
}

static void judge_addmm(struct work *w, struct env_var *v)
{
    if (version_at_least(w->s.torch, 2, 5, 0))
        work_refuse_by_torch(w, v, v->row->source,
                             "not read from torch 2.5 on; the name is DISABLE_ADDMM_CUDA_LT, even on ROCm");
    else
        accept_by_row(w, v);
}

static void judge_use_cpu(struct work *w, struct env_var *v)
{
    accept_by_row(w, v);
    if (is_on(v->value))
        work_warn(w, "ACCELERATE_USE_CPU=%s makes Accelerate train on the CPU", v->value);
}

static void judge_mixed_precision(struct work *w, struct env_var *v)
{
    accept_by_row(w, v);
    if (str_eq(v->value, "bf16") && w->s.chip && str_eq(w->s.chip->bf16, "none"))
        work_warn(w, "ACCELERATE_MIXED_PRECISION=bf16, but %s has no bf16 arithmetic: use fp16",
                  w->s.chip->gfx);
}

/* Variables whose verdict needs more than the row of names. */
static const struct {
    const char *name;
    void (*judge)(struct work *w, struct env_var *v);
} judges[] = {
    { "PYTORCH_NO_HIP_MEMORY_CACHING", judge_no_caching },
    { "PYTORCH_NO_CUDA_MEMORY_CACHING", judge_no_caching },
    { "AMD_SERIALIZE_KERNEL", judge_serialize },
    { "AMD_SERIALIZE_COPY", judge_serialize },
    { "HIP_LAUNCH_BLOCKING", judge_launch_blocking },
    { "AMD_LOG_LEVEL", judge_log_level },
    { "HSAKMT_DEBUG_LEVEL", judge_log_level },
    { "HSA_XNACK", judge_xnack },
    { "ROCBLAS_USE_HIPBLASLT", judge_rocblas_lt },
    { "TORCH_BLAS_PREFER_HIPBLASLT", judge_torch_lt },
    { "TORCH_BLAS_PREFER_CUBLASLT", judge_torch_lt },
    { "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", judge_aotriton },
    { "DISABLE_ADDMM_HIP_LT", judge_addmm },
    { "ACCELERATE_USE_CPU", judge_use_cpu },
    { "ACCELERATE_MIXED_PRECISION", judge_mixed_precision },
};

/* The intended value of a word for yes or no. */
static const char *meant_flag(const char *text)
{
    static const char *const yes[] = { "true", "yes", "on", "y", "t", "enable", "enabled" };
    static const char *const no[] = { "false", "no", "off", "n", "f", "disable", "disabled" };
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (!strcasecmp(text, yes[i]))
            return "1";
        if (!strcasecmp(text, no[i]))
            return "0";
    }
    return NULL;
}

static bool word_is_known(const char *words, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = words; p; p = strchr(p, '|'), p = p ? p + 1 : NULL)
        if (!strncasecmp(p, text, n) && (p[n] == '|' || !p[n]))
            return n > 0;
    return false;
}

/* What is wrong with the value itself; *better is the intended value, if it can be inferred. */
static const char *flaw_of_syntax(const struct env_var *v, const char **better)
{
    uint64_t number;
    bool flag = str_eq(v->value, "0") || str_eq(v->value, "1");
    *better = NULL;
    switch (v->row->syntax) {
    case ENV_FLAG:
        *better = meant_flag(v->value);
        return flag ? NULL : "only 0 and 1 are valid; this value is ignored";
    case ENV_HIP_FLAG:
        *better = meant_flag(v->value);
        return cairn_parse_u64(v->value, &number) || str_eq(v->value, "true")
                   ? NULL
                   : "must be a number or the word true";
    case ENV_TRUE:
        if (!is_on(v->value) || str_eq(v->value, "TRUE"))
            return NULL;
        *better = "TRUE";
        return "only the exact word TRUE is valid; this value is ignored";
    case ENV_NUMBER:
        return cairn_parse_u64(v->value, &number) ? NULL : "must be an integer";
    case ENV_WORD:
        return word_is_known(v->row->values, v->value) ? NULL : "not a valid value";
    case ENV_TEXT:
        break;
    }
    return NULL;
}

static void judge_value(struct work *w, struct env_var *v)
{
    for (size_t i = 0; i < ARRAY_LEN(judges); i++)
        if (str_eq(judges[i].name, v->name)) {
            judges[i].judge(w, v);
            return;
        }
    if (v->row->verdict == ENV_UNREAD)
        work_refuse(w, v, v->row->source, "nothing reads it%s%s", v->row->advice ? "; " : "",
                    v->row->advice ? v->row->advice : "");
    else
        accept_by_row(w, v);
}

static void judge_one(struct work *w, struct env_var *v)
{
    const char *better, *flaw = flaw_of_syntax(v, &better);
    if (!flaw) {
        judge_value(w, v);
        return;
    }
    if (!work_refuse(w, v, v->row->source, "%s", flaw) || !better)
        return;
    /* The intended value is judged as if it had been written correctly. */
    struct env_var meant = { .name = v->name, .value = better, .row = v->row };
    judge_value(w, &meant);
    if (meant.state == VAR_ACCEPTED)
        work_set(w, v->name, better, "your value, in the form that its reader accepts", v->row->source);
}

void judge_rest(struct work *w)
{
    for (size_t i = 0; i < w->n_vars; i++)
        if (w->vars[i].state == VAR_OPEN && w->vars[i].row)
            judge_one(w, &w->vars[i]);
}
