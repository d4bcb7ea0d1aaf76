/* SPDX-License-Identifier: Apache-2.0
 * Differences between the environment that cairn gave the command and that of the trainer: a start script
 * restored or changed variables.  The rules for the user's environment judge them too. */
#ifndef CAIRN_RUN_MISMATCH_H
#define CAIRN_RUN_MISMATCH_H

#include "rules/plan.h"
#include "run/observe.h"

struct mismatch {
    const char *name;
    const char *value; /* in the trainer; NULL: not set */
    const char *given; /* by cairn; NULL: not set */
    const char *why;   /* it matters */
    const char *where; /* "start.sh, line 4" sets it; NULL: not found */
};

/* The input; given is the environment that the command was started with. */
struct mismatch_view {
    const struct facts *facts;
    const struct plan_options *planning;
    const struct plan *plan;
    const char *const *given;
    char *const *argv;
};
size_t mismatch_find(const struct mismatch_view *v, const struct observed *o, struct arena *a,
                     struct mismatch **out);
/* Where the command's own files set a variable: "start.sh, line 4"; NULL: not found. */
const char *mismatch_place(char *const *argv, const char *name, struct arena *a);

/* The environment of a process: the given one, overridden by what was observed. */
const char *const *mismatch_env(const char *const *given, const struct observed *o, struct arena *a);

/* The changes that another PyTorch needs: `seen` are facts with that one first, `changed` are names not to
 * touch. False: none. */
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
