/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/plan_work.h"

#include "base/str.h"
#include "rules/env_sources.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NEW_NAME "PYTORCH_ALLOC_CONF"
#define HIP_NAME "PYTORCH_HIP_ALLOC_CONF"
#define CUDA_NAME "PYTORCH_CUDA_ALLOC_CONF"

/* Which of the names takes precedence, most important first, by torch version (docs/rules/allocator.md). A
 * version does not read names that are missing from its row. */
static const struct {
    const char *torch_from;
    const char *names[3];
} readers[] = {
    { "2.12", { NEW_NAME, CUDA_NAME, HIP_NAME } },
    { "2.8", { CUDA_NAME, HIP_NAME, NULL } },
    { "0", { HIP_NAME, NULL, NULL } },
};
/* Read by every torch, whatever its version. */
static const char *const any_torch[3] = { HIP_NAME, CUDA_NAME, NEW_NAME };

static const char *const *names_read(struct version torch)
{
    struct version from = { 0 };
    for (size_t i = 0; torch.n && i < ARRAY_LEN(readers); i++)
        if (version_parse(readers[i].torch_from, &from) && version_compare(torch, from) >= 0)
            return readers[i].names;
    return any_torch;
}

static bool is_read(const char *const *names, const char *name)
{
    for (int i = 0; i < 3 && names[i]; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

const char *plan_allocator_name(struct version torch)
{
    return version_at_least(torch, 2, 12, 0) ? NEW_NAME : HIP_NAME;
}

/* Expandable segments on ROCm: upstream from 2.12, AMD's own builds from 2.11, both with ROCm 7.0. */
static enum tri can_expand(const struct situation *s)
{
    if (!s->torch.n || !s->rocm.n)
        return s->torch.n && version_below(s->torch, 2, 11, 0) ? TRI_NO : TRI_UNKNOWN;
    bool amd = s->lists && s->lists->therock;
    return version_at_least(s->rocm, 7, 0, 0) && version_at_least(s->torch, 2, amd ? 11 : 12, 0) ? TRI_YES
                                                                                                 : TRI_NO;
}

/* ROCm 7.14 waits for a fence that the driver sets from its interface 3.64 (Linux 6.16) on: the first mapping
 * never returns. AMD's DKMS driver has version numbers of its own, so there it is unknown. */
static bool kernel_is_old(const struct work *w)
{
    return !w->o->windows && !w->f->host.amdgpu_version.s && version_below(w->s.kernel, 6, 16, 0);
}

struct option_text {
    const char *key, *value; /* value NULL: no colon */
    const char *whole;
};

/* The next "key:value" of the list; brackets may contain commas. */
static bool next_option(struct work *w, const char **at, struct option_text *out)
{
    const char *p = *at + strspn(*at, " ,"), *end = p;
    for (int depth = 0; *end && (depth || *end != ','); end++)
        depth += (*end == '[') - (*end == ']' && depth);
    if (end == p)
        return false;
    out->whole = arena_strndup(w->a, p, (size_t)(end - p));
    size_t key = strcspn(out->whole, ":");
    out->key = arena_strndup(w->a, out->whole, key);
    out->value = out->whole[key] ? out->whole + key + 1 : NULL;
    *at = end;
    return true;
}

static const char *flaw_of_split_size(struct work *w, const char *value)
{
    uint64_t mb;
    return cairn_parse_u64(value, &mb) && mb > 20 ? NULL
                                                  : arena_printf(w->a,
                                                                 "PyTorch rejects max_split_size_mb:%s; it "
                                                                 "must be above 20",
                                                                 value);
}

static const char *flaw_of_threshold(struct work *w, const char *value)
{
    double share;
    char end;
    bool fine = sscanf(value, "%lf%c", &share, &end) == 1 && share > 0 && share < 1;
    return fine ? NULL
                : arena_printf(w->a,
                               "PyTorch rejects garbage_collection_threshold:%s; it must be between 0 and 1",
                               value);
}

static const char *flaw_of_backend(struct work *w, const char *value)
{
    bool known =
        str_eq(value, "native") || str_eq(value, "cudaMallocAsync") || str_eq(value, "hipMallocAsync");
    return known ? NULL
                 : arena_printf(w->a, "PyTorch rejects backend:%s; only native and cudaMallocAsync exist",
                                value);
}

static const char *flaw_of_expandable(struct work *w, const char *value)
{
    if (strcasecmp(value, "true") && strcasecmp(value, "false"))
        return arena_printf(w->a, "PyTorch rejects expandable_segments:%s; it must be True or False", value);
    if (!w->unsure && !strcasecmp(value, "true") && can_expand(&w->s) == TRI_YES && kernel_is_old(w) &&
        version_at_least(w->s.rocm, 7, 14, 0))
        return "expandable_segments hangs in the first mapping with this ROCm on kernels before 6.16";
    return NULL;
}

/* Options whose wrong value makes PyTorch fail or hang. */
static const struct {
    const char *key;
    const char *(*flaw)(struct work *w, const char *value);
} option_checks[] = {
    { "max_split_size_mb", flaw_of_split_size },
    { "garbage_collection_threshold", flaw_of_threshold },
    { "backend", flaw_of_backend },
    { "expandable_segments", flaw_of_expandable },
};

static const char *flaw_of_option(struct work *w, const struct option_text *o)
{
    if (!o->value)
        return arena_printf(w->a, "\"%s\" is not option:value", o->whole);
    for (size_t i = 0; i < ARRAY_LEN(option_checks); i++)
        if (str_eq(option_checks[i].key, o->key))
            return option_checks[i].flaw(w, o->value);
    return NULL;
}

static const char *remark_on(struct work *w, const struct option_text *o)
{
    if (!str_eq(o->key, "expandable_segments") || strcasecmp(o->value, "true"))
        return NULL;
    switch (can_expand(&w->s)) {
    case TRI_NO:
        return arena_printf(
            w->a,
            "%s ignores expandable_segments on ROCm, with one warning: it needs torch 2.12 and "
            "ROCm 7.0",
            work_torch_text(w));
    case TRI_YES:
        return "expandable_segments is active here; one report describes a hang, so try a short run first";
    default:
        return "expandable_segments works from torch 2.12 with ROCm 7.0 on, and is ignored before";
    }
}

/* The text without the harmful options; NULL if nothing is left. *flaw and *remark may stay NULL. */
static const char *clean_text(struct work *w, const char *text, const char **flaw, const char **remark)
{
    struct option_text o;
    const char *clean = NULL;
    while (next_option(w, &text, &o)) {
        const char *wrong = flaw_of_option(w, &o);
        if (wrong) {
            *flaw = *flaw ? *flaw : wrong;
            continue;
        }
        *remark = *remark ? *remark : remark_on(w, &o);
        clean = clean ? arena_printf(w->a, "%s,%s", clean, o.whole) : o.whole;
    }
    return clean;
}

/* The user's variable that takes precedence: the first name that this torch reads, else any. */
static struct env_var *leading_var(struct work *w, const char *const *names)
{
    for (int i = 0; i < 3 && names[i]; i++)
        if (work_var(w, names[i]))
            return work_var(w, names[i]);
    for (int i = 0; i < 3; i++)
        if (work_var(w, any_torch[i]))
            return work_var(w, any_torch[i]);
    return NULL;
}

/* On shared memory, torch's cache takes memory from everything else. */
static void own_policy(struct work *w)
{
    if (w->s.unified != TRI_YES || !w->s.torch.n)
        return;
    bool expand = can_expand(&w->s) == TRI_YES && version_at_least(w->s.torch, 2, 12, 0) && !kernel_is_old(w);
    w->computed[ENV_VALUE_ALLOCATOR].value = expand
                                                 ? "garbage_collection_threshold:0.8,expandable_segments:True"
                                                 : "garbage_collection_threshold:0.8";
    if (expand)
        w->computed[ENV_VALUE_ALLOCATOR].why =
            "CPU and GPU share memory, so torch's cache takes memory from the system: above this fraction "
            "torch frees old cached blocks (once the trainer sets a memory fraction), and expandable "
            "segments prevent fragmentation";
}

static void move_text(struct work *w, const char *text, const char *why)
{
    if (!text)
        own_policy(w);
    else if (w->s.torch.n)
        w->computed[ENV_VALUE_ALLOCATOR] = (struct computed){ text, why, DOC_ALLOCATOR };
    else /* no rule sets this name, but every torch reads one of them */
        work_set(w, HIP_NAME, text, why, DOC_ALLOCATOR);
}

static void judge_leader(struct work *w, struct env_var *v, const char *const *names)
{
    const char *flaw = NULL, *remark = NULL, *text = clean_text(w, v->value, &flaw, &remark);
    const char *name = plan_allocator_name(w->s.torch);
    v->fatal = flaw != NULL;
    if (flaw && work_refuse(w, v, DOC_ALLOCATOR, "%s", flaw)) {
        move_text(w, text, "your options without the harmful one");
    } else if (!flaw && !is_read(names, v->name) &&
               work_refuse_by_torch(w, v, DOC_ALLOCATOR, "%s does not read this name on ROCm; it reads %s",
                                    work_torch_text(w), name)) {
        move_text(w, text,
                  arena_printf(w->a, "your options, under the name that %s reads", work_torch_text(w)));
    } else if (!flaw && v->state == VAR_OPEN) {
        work_accept(w, v, "your options for the allocator%s%s", remark ? "; " : "", remark ? remark : "");
    }
}

static void judge_follower(struct work *w, struct env_var *v, const struct env_var *leader)
{
    bool same = str_eq(v->value, leader->value), stays = leader->state == VAR_ACCEPTED;
    if (same && stays)
        work_accept(w, v, "same value as %s: redundant", leader->name);
    else
        work_refuse(w, v, DOC_ALLOCATOR,
                    same ? "had the same value as %s" : "differs from %s, which takes precedence",
                    leader->name);
}

/* Even an empty one hides another name from torch. */
static void drop_empty(struct work *w)
{
    for (int i = 0; i < 3; i++) {
        struct env_var *v = work_var(w, any_torch[i]);
        if (v && !v->value[strspn(v->value, " ,")])
            work_refuse(w, v, DOC_ALLOCATOR, "empty: no effect");
    }
}

void allocator_plan(struct work *w)
{
    const char *const *names = names_read(w->s.torch);
    drop_empty(w);
    struct env_var *leader = leading_var(w, names);
    if (!leader) {
        own_policy(w);
        return;
    }
    judge_leader(w, leader, names);
    for (int i = 0; i < 3; i++) {
        struct env_var *v = work_var(w, any_torch[i]);
        if (v && v != leader)
            judge_follower(w, v, leader);
    }
}
