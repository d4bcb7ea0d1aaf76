/* SPDX-License-Identifier: Apache-2.0
 * The environment that a trainer should get on this machine, and why: a function of facts and rules.
 *
 * A plan never contains two variables that contradict each other.  The user's own setting wins unless it is
 * known to harm; then it is in `unset`, with its replacement (if any) in `set`. */
#ifndef CAIRN_RULES_PLAN_H
#define CAIRN_RULES_PLAN_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"
#include "rules/override.h"

struct plan_var {
    const char *name, *value, *why, *source;
    /* Only for a removed variable: with it nothing works, because no GPU is found or the first kernel stops
     * the job. */
    bool fatal;
    enum override_flaw flaw; /* only for a removed override: what is wrong with its value */
};

struct plan {
    const struct gpu_facts *gpu; /* the one planned for; NULL: no GPU that can train */
    struct plan_var *set, *unset, *keep;
    size_t n_set, n_unset, n_keep;
    const struct gpu_facts **visible; /* what the trainer will see, in HIP's order; empty: none, or unknown */
    size_t n_visible;
    struct problems warnings;
};

struct plan_options {
    int gpu;                 /* HIP index; -1: the default */
    bool debug;              /* add the variables for debugging */
    bool windows;            /* plan for Windows, where HSA_* does not exist */
    const char *trainer;     /* NULL: any */
    const char *const *keep; /* names to keep even if they harm; NULL-terminated or NULL */
    const char *const *with; /* "NAME=VALUE" to add; NULL-terminated or NULL */
};

/* Fails for a GPU that does not exist, an unknown trainer, or a --with without '='. */
int plan_build(const struct facts *f, const struct plan_options *o, struct arena *a, struct plan *out,
               struct cairn_error *err);
const struct plan_var *plan_find(const struct plan_var *vars, size_t n, const char *name);

/* The override that the plan sets for this GPU, under its node's name or the plain one; NULL: none. */
const struct plan_var *plan_override(const struct plan *p, const struct gpu_facts *g);

/* The user's environment with the plan applied; NULL-terminated, in the arena. */
const char *const *plan_environment(const struct facts *f, const struct plan *p, struct arena *a);
/* An environment with one change applied: sets these variables and removes those. */
const char *const *plan_change(const char *const *env, const struct plan_var *set, size_t n_set,
                               const char *const *unset, size_t n_unset, struct arena *a);

/* The variables that select GPUs, in the order in which they are applied. */
enum { PLAN_N_SELECTORS = 3 };
extern const char *const plan_selectors[PLAN_N_SELECTORS];
bool plan_is_selector(const char *name);
/* The GPUs that the HSA runtime shows to HIP with the user's ROCR_VISIBLE_DEVICES, in HIP's order. */
size_t plan_shown(const struct facts *f, struct arena *a, const struct gpu_facts ***out);
/* The GPUs that a program sees with these values of ROCR_VISIBLE_DEVICES and of the variable that HIP reads;
 * NULL: not set. */
size_t plan_visible(const struct facts *f, const char *rocr, const char *hip, struct arena *a,
                    const struct gpu_facts ***out);

/* The name under which this torch reads its allocator options; the oldest name if the version is unknown. */
const char *plan_allocator_name(struct version torch);

#endif
