/* SPDX-License-Identifier: Apache-2.0
 * What the attempts of a run really had, where that is not what they were given: said at once, kept in the journal, and
 * the ground for the diagnosis and the next attempt. */
#ifndef CAIRN_RUN_ACTUAL_H
#define CAIRN_RUN_ACTUAL_H

#include "base/message_sink.h"
#include "run/journal.h"
#include "run/mismatch.h"

struct actual {
    struct mismatch_view view; /* planning NULL: the environment was left alone, and nothing is said of it */
    struct arena *a;
    struct journal *journal;
    const struct message_sink *messages;
    struct observe observe;
    struct observed last;    /* of this attempt; pid 0: nothing was seen */
    struct mismatch *undone; /* of all attempts, each name once */
    size_t n_undone;
    struct facts facts; /* those of the run, with the PyTorch first that was loaded */
    const char *torch;  /* where that is; NULL: none was seen */
    bool other_torch;   /* than the one planned for */
    bool replanned;
};

/* In place: it must not be moved.  What v names must outlive it; its given and argv come with actual_begin.  calls: as for
 * struct observe. */
void actual_init(struct actual *x, const struct mismatch_view *v, struct journal *j,
                 const struct message_sink *t, const char *calls, struct arena *a);
/* An attempt begins. */
void actual_begin(struct actual *x, char *const *argv, const char *const *given);
/* The environment that the trainer had, as far as it was seen. */
const char *const *actual_env(const struct actual *x);
/* Does the command set this variable itself, so that no retry can change it?  *where says in which file, or is NULL. */
bool actual_sets(const struct actual *x, const char *name, const char **where);
/* Those names, and --keep's.  NULL-terminated. */
const char *const *actual_kept(const struct actual *x, const char *const *keep);
/* Another PyTorch was loaded than was planned for, and the plan for it is another: *out, once.  From then on it is the one
 * planned for. */
bool actual_replan(struct actual *x, const char *const *changed, struct replan *out);

#endif
