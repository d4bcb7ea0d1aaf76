/* SPDX-License-Identifier: Apache-2.0
 * What to try next: a pure function of a diagnosis and of what was tried.
 *
 * The fixes of a diagnosis are taken from the top, one at a time; the first automatic one that is allowed, would
 * change something and was not tried yet is the next.  To take back what another one set is no change: so it was when it
 * failed.  A retry happens by itself only where it cannot destroy work. */
#ifndef CAIRN_RUN_LADDER_H
#define CAIRN_RUN_LADDER_H

#include "base/arena.h"
#include "rules/diagnose.h"
#include <stdbool.h>

struct ladder {
    const char **tried; /* keys of fixes */
    size_t n_tried;
    const char **ours; /* variables that were not there before a fix set them */
    size_t n_ours;
    bool on_cpu; /* nothing comes after that */
};

struct ladder_look {
    const struct diagnosis *diagnosis;
    const char *const *env;  /* that it ran with */
    const char *const *keep; /* names that the user wants to keep as they are; NULL-terminated or NULL */
    int retries_left;
    bool allow_cpu;
    bool can_optimize; /* the command has an option that selects an 8-bit optimizer */
    bool has_caches;   /* there are caches to clear */
    bool saw_step, can_resume;
};

enum ladder_word {
    LADDER_STOP,  /* nothing to try */
    LADDER_RETRY, /* apply fix and start again */
    LADDER_SUGGEST, /* fix is what a person may try: here it could destroy work, was not allowed, or has no retry left */
};
struct ladder_step {
    enum ladder_word word;
    const struct diagnose_fix *fix; /* NULL when stopping */
    const char *why;                /* of a suggestion; NULL for the others */
};

struct ladder_step ladder_next(const struct ladder *l, const struct ladder_look *look, struct arena *a);
/* env: before the fix. */
void ladder_note(struct ladder *l, const struct diagnose_fix *fix, const char *const *env, struct arena *a);
/* "HSA_OVERRIDE_GFX_VERSION=10.3.0, without HSA_ENABLE_SDMA": what a fix changes, for people and journals. */
const char *ladder_describe(const struct diagnose_fix *fix, struct arena *a);

#endif
