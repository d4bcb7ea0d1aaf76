/* SPDX-License-Identifier: Apache-2.0
 * A process whose device fails becomes a fresh one, which goes on from the last checkpoint: first as it was, then with one
 * workaround more each time.  After an hour without trouble in which a checkpoint was made it begins again with "as it was", but
 * keeps what it has.
 *
 * All that it takes is made beforehand, so that it can also be done from the thread that finds another stuck. */
#ifndef CAIRN_START_RESTART_H
#define CAIRN_START_RESTART_H

#include "base/arena.h"
#include "base/message_sink.h"
#include "gpu/gpu.h"
#include <stdbool.h>

/* Where a run stands on the ladder. */
struct restart_place {
    int times;      /* restarts in a row */
    int workaround; /* this one and those before it are in use; 0: none */
};
/* The next place up; false: there is none.  lived_s is how long the process has lived, came_further: it has made a checkpoint. */
bool restart_next(struct restart_place *p, double lived_s, bool came_further, enum gpu_api api,
                  bool allow_cpu);

/* argv: from the command's name on; resume: --resume is in it, else it is added.  Finds out where this process stands: in
 * place of another, or, with `resume`, of a run whose process died with a workaround (dir's run.json).  One of a run that
 * came to a good end is tried without. */
void restart_prepare(int argc, char **argv, bool resume, const char *dir, const struct message_sink *messages,
                     struct arena *a);
/* Sets the workarounds' variables in this process; before the first thread, and after what judges variables. */
void restart_apply(void);
bool restart_wants_cpu(void);
const char *restart_workaround(void); /* its name, for run.json; NULL: none */
const char *restart_why(void);        /* why this process is in place of another; NULL: it is not */
/* What the next one may try. */
void restart_know(enum gpu_api api, bool allow_cpu);
/* Returns where it cannot, where nothing was prepared, or where the ladder ends.  once: no other will follow, which is said. */
void restart_now(const struct cairn_error *why, bool once);

#endif
