/* SPDX-License-Identifier: Apache-2.0 */
#include "run/ladder.h"

#include "base/str.h"
#include <string.h>

const char *ladder_describe(const struct diagnose_fix *fix, struct arena *a)
{
    static const char *const words[] = {
        [DIAGNOSE_ACT_NONE] = "nothing",
        [DIAGNOSE_ACT_RESTART] = "unchanged",
        [DIAGNOSE_ACT_RESUME] = "from the last checkpoint",
        [DIAGNOSE_ACT_CLEAR_CACHES] = "stale kernel caches moved aside",
        [DIAGNOSE_ACT_OTHER_GPU] = "another GPU",
        [DIAGNOSE_ACT_CPU] = "the CPU",
        [DIAGNOSE_ACT_OPTIMIZER] = "an optimizer without bitsandbytes",
    };
    CLEANUP(str_release) struct str text = { 0 };
    const char *word = (size_t)fix->action < ARRAY_LEN(words) ? words[fix->action] : NULL;
    if (word && !fix->n_set && !fix->n_unset)
        return word;
    for (size_t i = 0; i < fix->n_set; i++)
        str_addf(&text, "%s%s=%s", i ? ", " : "", fix->set[i].name, fix->set[i].value);
    for (size_t i = 0; i < fix->n_unset; i++)
        str_addf(&text, "%swithout %s", text.len ? ", " : "", fix->unset[i]);
    return text.len ? arena_strdup(a, text.s) : "nothing";
}

static const char *key_of(const struct diagnose_fix *fix, struct arena *a)
{
    return arena_printf(a, "%s: %s", diagnose_action_name(fix->action), ladder_describe(fix, a));
}

void ladder_note(struct ladder *l, const struct diagnose_fix *fix, const char *const *env, struct arena *a)
{
    *ARENA_PUSH(a, l->tried, l->n_tried) = key_of(fix, a);
    l->on_cpu |= fix->action == DIAGNOSE_ACT_CPU;
    for (size_t i = 0; i < fix->n_set; i++)
        if (!str_env(env, fix->set[i].name))
            *ARENA_PUSH(a, l->ours, l->n_ours) = fix->set[i].name;
}

static bool is_ours(const struct ladder *l, const char *name)
{
    for (size_t i = 0; i < l->n_ours; i++)
        if (!strcmp(l->ours[i], name))
            return true;
    return false;
}

static bool was_tried(const struct ladder *l, const struct diagnose_fix *fix, struct arena *a)
{
    const char *key = key_of(fix, a);
    for (size_t i = 0; i < l->n_tried; i++)
        if (!strcmp(l->tried[i], key))
            return true;
    return false;
}

static bool changes_environment(const struct ladder *l, const struct diagnose_fix *fix,
                                const char *const *env)
{
    for (size_t i = 0; i < fix->n_set; i++)
        if (!str_eq(str_env(env, fix->set[i].name), fix->set[i].value))
            return true;
    for (size_t i = 0; i < fix->n_unset; i++)
        if (str_env(env, fix->unset[i]) && !is_ours(l, fix->unset[i]))
            return true;
    return false;
}

static bool is_kept(const char *const *keep, const char *name)
{
    for (; keep && *keep; keep++)
        if (!strcmp(*keep, name))
            return true;
    return false;
}

static bool touches_kept(const struct diagnose_fix *fix, const char *const *keep)
{
    for (size_t i = 0; i < fix->n_set; i++)
        if (is_kept(keep, fix->set[i].name))
            return true;
    for (size_t i = 0; i < fix->n_unset; i++)
        if (is_kept(keep, fix->unset[i]))
            return true;
    return false;
}

/* May cairn do it, and would it change anything? */
static bool applies(const struct ladder *l, const struct diagnose_fix *fix, const struct ladder_input *look)
{
    if (touches_kept(fix, look->keep))
        return false;
    switch (fix->action) {
    case DIAGNOSE_ACT_ENV:
    case DIAGNOSE_ACT_OTHER_GPU:
        return changes_environment(l, fix, look->env);
    case DIAGNOSE_ACT_RESTART:
        return true;
    case DIAGNOSE_ACT_RESUME:
        return look->saw_step && look->can_resume;
    case DIAGNOSE_ACT_CLEAR_CACHES:
        return look->has_caches;
    case DIAGNOSE_ACT_CPU:
        return look->allow_cpu;
    case DIAGNOSE_ACT_OPTIMIZER:
        return look->can_optimize;
    case DIAGNOSE_ACT_NONE:
        break;
    }
    return false;
}

static const struct diagnose_fix *next_fix(const struct ladder *l, const struct ladder_input *look,
                                           struct arena *a)
{
    const struct diagnosis *d = look->diagnosis;
    for (size_t i = 0; i < d->n_fixes && !l->on_cpu; i++)
        if (d->fixes[i].automatic && applies(l, &d->fixes[i], look) && !was_tried(l, &d->fixes[i], a))
            return &d->fixes[i];
    return NULL;
}

/* The fix that only needs --allow-cpu. */
static const struct diagnose_fix *on_cpu(const struct ladder_input *look)
{
    const struct diagnosis *d = look->diagnosis;
    for (size_t i = 0; i < d->n_fixes && !look->allow_cpu; i++)
        if (d->fixes[i].automatic && d->fixes[i].action == DIAGNOSE_ACT_CPU)
            return &d->fixes[i];
    return NULL;
}

struct ladder_step ladder_next(const struct ladder *l, const struct ladder_input *look, struct arena *a)
{
    if (look->diagnosis->severity != DIAGNOSE_ERROR)
        return (struct ladder_step){ LADDER_STOP, NULL, NULL };
    const struct diagnose_fix *fix = next_fix(l, look, a);
    if (!fix && on_cpu(look))
        return (struct ladder_step){ LADDER_SUGGEST, on_cpu(look), "the CPU needs --allow-cpu" };
    if (!fix)
        return (struct ladder_step){ LADDER_STOP, NULL, NULL };
    if (look->retries_left <= 0)
        return (struct ladder_step){ LADDER_SUGGEST, fix, "no retries left" };
    if (look->saw_step && !look->can_resume)
        return (struct ladder_step){ LADDER_SUGGEST, fix, "a restart would lose the steps trained so far" };
    return (struct ladder_step){ LADDER_RETRY, fix, NULL };
}
