/* SPDX-License-Identifier: Apache-2.0
 * What to try next: a pure function of a diagnosis and of what was tried.
 *
 * The next fix is the first automatic one of the diagnosis that is allowed, changes something and was not
 * tried yet. Undoing an earlier fix is no change: without it the run had failed too.  cairn retries by
 * itself only if that cannot destroy work. */
#ifndef CAIRN_RUN_LADDER_H
#define CAIRN_RUN_LADDER_H

#include "base/arena.h"
#include "rules/diagnose.h"
#include <stdbool.h>

struct ladder {
    const char **tried; /* keys of fixes */
    size_t n_tried;
    const char **ours; /* variables that only a fix has set */
    size_t n_ours;
    bool on_cpu; /* the last resort was tried */
};

struct ladder_input {
    const struct diagnosis *diagnosis;
    const char *const *env;  /* that it ran with */
    const char *const *keep; /* names of variables not to change; NULL-terminated or NULL */
    int retries_left;
    bool allow_cpu;
    bool can_optimize; /* the command has an option that selects an 8-bit optimizer */
    bool has_caches;   /* there are caches to clear */
    bool saw_step, can_resume;
};

enum ladder_word {
    LADDER_STOP,    /* nothing to try */
    LADDER_RETRY,   /* apply fix and start again */
    LADDER_SUGGEST, /* the user may try it: it could destroy work, is not allowed, or no retries are left */
};
struct ladder_step {
    enum ladder_word word;
    const struct diagnose_fix *fix; /* NULL when stopping */
    const char *why;                /* of a suggestion; NULL for the others */
};

struct ladder_step ladder_next(const struct ladder *l, const struct ladder_input *look, struct arena *a);
/* env: before the fix. */
void ladder_note(struct ladder *l, const struct diagnose_fix *fix, const char *const *env, struct arena *a);
/* "HSA_OVERRIDE_GFX_VERSION=10.3.0, without HSA_ENABLE_SDMA": what a fix changes, for people and journals. */
const char *ladder_describe(const struct diagnose_fix *fix, struct arena *a);

#endif
