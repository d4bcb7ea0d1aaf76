/* SPDX-License-Identifier: Apache-2.0
 * Where a trainer's environment is not the one that it was given: a start script put back what was removed, or changed
 * what was set.  What it then has is judged by the same rules as the user's own. */
#ifndef CAIRN_RUN_MISMATCH_H
#define CAIRN_RUN_MISMATCH_H

#include "rules/plan.h"
#include "run/observe.h"

struct mismatch {
    const char *name;
    const char *value; /* that the trainer has; NULL: none */
    const char *given; /* that it was started with; NULL: none */
    const char *why;   /* that matters */
    const char *where; /* "start.sh, line 4" sets it; NULL: not found */
};

/* What decides; given is the environment that the command was started with. */
struct mismatch_view {
    const struct facts *facts;
    const struct plan_options *planning;
    const struct plan *plan;
    const char *const *given;
    char *const *argv;
};
size_t mismatch_find(const struct mismatch_view *v, const struct observed *o, struct arena *a,
                     struct mismatch **out);
/* Where the command's own files set a variable, in words; NULL: not found. */
const char *mismatch_place(char *const *argv, const char *name, struct arena *a);

/* The environment of a process, as far as it is known: what it was given, with what was seen in it. */
const char *const *mismatch_env(const char *const *given, const struct observed *o, struct arena *a);

/* What to change in the environment so that it fits another PyTorch: `seen` are facts with that one first, `changed` the
 * names that are not to be touched.  False: nothing. */
struct replan {
    struct plan plan; /* the new one */
    struct plan_var *set;
    size_t n_set;
    const char **unset;
    size_t n_unset;
};
bool mismatch_replan(const struct mismatch_view *v, const struct facts *seen, const char *const *changed,
                     struct arena *a, struct replan *out);

#endif
