/* SPDX-License-Identifier: Apache-2.0
 * What the trainer really ran with, if that differs from what cairn gave it.  Differences are reported at
 * once, written to the journal, and used by the diagnosis and the next attempt. */
#ifndef CAIRN_RUN_ACTUAL_H
#define CAIRN_RUN_ACTUAL_H

#include "base/message_sink.h"
#include "run/journal.h"
#include "run/mismatch.h"

struct actual {
    struct mismatch_view view; /* planning NULL: --no-env, so the environment is not compared */
    struct arena *a;
    struct journal *journal;
    const struct message_sink *messages;
    struct observe observe;
    struct observed last;    /* of this attempt; pid 0: none yet */
    struct mismatch *undone; /* of all attempts, each name once */
    size_t n_undone;
    struct facts facts; /* of the run; the PyTorch that was loaded comes first */
    const char *torch;  /* folder of the loaded PyTorch; NULL: none was seen */
    bool other_torch;   /* it is not the one that the plan was made for */
    bool replanned;
};

/* x must not be moved afterwards.  What v points to must outlive it; actual_begin sets its given and argv.
 * calls: as in struct observe. */
void actual_init(struct actual *x, const struct mismatch_view *v, struct journal *j,
                 const struct message_sink *t, const char *calls, struct arena *a);
/* Call it at the start of each attempt. */
void actual_begin(struct actual *x, char *const *argv, const char *const *given);
/* The environment of the trainer, as far as it was observed. */
const char *const *actual_env(const struct actual *x);
/* Does the command set this variable itself, so that no retry can change it?  *where is the file that does
 * so, or NULL. */
bool actual_sets(const struct actual *x, const char *name, const char **where);
/* Those names and the ones of --keep.  NULL-terminated. */
const char *const *actual_kept(const struct actual *x, const char *const *keep);
/* True, once, if the trainer loaded another PyTorch than planned and it needs another plan: *out.  That
 * PyTorch then counts as the planned one. */
bool actual_replan(struct actual *x, const char *const *changed, struct replan *out);

#endif
