/* SPDX-License-Identifier: Apache-2.0
 * Runs that were started in a terminal, shown among the jobs: native training (record/runs.h) and trainers
 * under `cairn run` (run/history.h).
 *
 * They have no row in the database.  Their uid follows from their start and their folder, so that it stays the
 * same.  They can be looked at, stopped, and made a job (queue_adopt). */
#ifndef CAIRN_JOB_ADOPT_H
#define CAIRN_JOB_ADOPT_H

#include "base/arena.h"
#include "base/error.h"
#include "job/job_row.h"
#include "job/progress.h"

struct adopt_memory;

/* All that are not part of a job, the newest first.  `m` is for programs that ask more than once: runs that ended are
 * read once (adopt_memory.h); else NULL. */
int adopt_list(struct adopt_memory *m, const char *state, struct arena *a, struct job_row **out, size_t *n,
               struct cairn_error *err);
/* The one that a user means, as store_find finds jobs; false: none. */
bool adopt_find(struct adopt_memory *m, const char *state, const char *word, struct arena *a,
                struct job_row *out);
void adopt_progress(const struct job_row *row, struct job_progress *out);
/* Asks it to save and end, as Ctrl-C does. */
int adopt_stop(const struct job_row *row, struct cairn_error *err);

#endif
