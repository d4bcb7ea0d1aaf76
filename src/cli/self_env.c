/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/self_env.h"

#include "base/str.h"
#include "rules/plan.h"
#include <stdio.h>
#include <stdlib.h>

extern char **environ;

/* Any GPU may be asked for by name, so none is hidden. */
static bool selects_gpus(const char *name)
{
    for (int i = 0; i < PLAN_N_SELECTORS; i++)
        if (str_eq(plan_selectors[i], name))
            return true;
    return false;
}

/* What the loader reads it has read already; the child that compiles kernels must find the same libraries. */
static bool is_for_the_loader(const char *name)
{
    return str_starts(name, "LD_");
}

/* PyTorch is not asked about: cairn brings its own kernels, and needs no other chip's name. */
void self_env_apply(void)
{
    const struct facts_options fo = { .env = (const char *const *)environ, .parts = FACTS_HARDWARE };
    const struct plan_options po = { .gpu = -1 };
    struct cairn_error err = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(facts_release) struct facts f;
    struct plan plan;
    if (facts_read(&f, &fo, &err) || plan_build(&f, &po, &a, &plan, &err))
        return; /* what cannot be judged stays as it is */
    for (size_t i = 0; i < plan.n_unset; i++) {
        const struct plan_var *v = &plan.unset[i];
        if (is_for_the_loader(v->name))
            continue;
        fprintf(stderr, "cairn: leaves out %s=%s: %s\n", v->name, v->value, v->why);
        unsetenv(v->name);
    }
    for (size_t i = 0; i < plan.n_set; i++)
        if (!selects_gpus(plan.set[i].name) && !is_for_the_loader(plan.set[i].name))
            setenv(plan.set[i].name, plan.set[i].value, 1);
}
