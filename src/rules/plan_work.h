/* SPDX-License-Identifier: Apache-2.0
 * The state while a plan is built; private to plan*.c.
 *
 * The user's variables come in as `vars`.  Each part judges the ones it knows together (devices, override,
 * allocator, paths), then the rest is judged one by one; at the end every variable is accepted or refused.
 * Values that a rule cannot state are stored in `computed`.  A variable that the user insists on (--keep,
 * --with) is never removed: refusing it adds a warning instead. */
#ifndef CAIRN_RULES_PLAN_WORK_H
#define CAIRN_RULES_PLAN_WORK_H

#include "rules/env_names.h"
#include "rules/env_rules.h"
#include "rules/plan.h"

enum var_state {
    VAR_OPEN, /* not judged yet */
    VAR_ACCEPTED,
    VAR_REFUSED,
    VAR_QUIET, /* no comment on it (PATH) */
};

struct env_var {
    const char *name, *value;
    const struct env_name *row; /* NULL only for an unknown name given with --with */
    bool forced;                /* by --keep or --with */
    bool given;                 /* by --with: goes into `set` */
    enum var_state state;
    bool fatal; /* set before it is refused: nothing works with it */
    enum override_flaw flaw;
    const char *why, *source;
};

struct computed {
    const char *value, *why, *source; /* why and source NULL: the rule's own */
};

struct work {
    const struct facts *f;
    const struct plan_options *o;
    struct arena *a;
    struct plan *plan;
    struct env_var *vars;
    size_t n_vars;
    const struct gpu_facts **visible; /* that the trainer will see, including the one planned for */
    size_t n_visible;
    bool unsure; /* there is a command, and it may import another PyTorch than the one planned for */
    struct situation s;
    struct computed computed[ENV_N_VALUES];
    struct plan_var *nodes; /* HSA_OVERRIDE_GFX_VERSION_<n> to set */
    size_t n_nodes;
};

/* The user's variable while it is active, else NULL. */
struct env_var *work_var(const struct work *w, const char *name);
/* Its value while it is active, else NULL. */
const char *work_value(const struct work *w, const char *name);
/* Removes the variable, with the reason; false if the user insists on it. */
bool work_refuse(struct work *w, struct env_var *v, const char *source, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
/* The same, for a reason that holds with the PyTorch planned for but maybe not with another. If that PyTorch
 * is only a guess, the variable stays, and a warning says why. */
bool work_refuse_by_torch(struct work *w, struct env_var *v, const char *source, const char *fmt, ...)
    PRINTF_LIKE(4, 5);
void work_accept(struct work *w, struct env_var *v, const char *fmt, ...) PRINTF_LIKE(3, 4);
void work_warn(struct work *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
void work_set(struct work *w, const char *name, const char *value, const char *why, const char *source);
/* "GPU 1 (gfx1036)" */
const char *work_gpu_text(const struct work *w, const struct gpu_facts *g);
/* "torch 2.9.1+rocm6.4", or "this PyTorch" if the version is unknown. */
const char *work_torch_text(const struct work *w);

/* The parts, in the order in which they run. */
int devices_plan(struct work *w, struct cairn_error *err);
void override_plan(struct work *w);
void allocator_plan(struct work *w);
void paths_plan(struct work *w);
void judge_rest(struct work *w);

#endif
