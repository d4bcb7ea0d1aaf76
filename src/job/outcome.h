/* SPDX-License-Identifier: Apache-2.0
 * How an attempt ended, by its files: verdict.json of its journal and run.json of the run's folder. */
#ifndef CAIRN_JOB_OUTCOME_H
#define CAIRN_JOB_OUTCOME_H

#include "base/arena.h"
#include "job/job_row.h"
#include "job/store.h"

/* JOB_LOST if the files do not say.  Strings are in the arena. */
void outcome_read(const char *state, const struct job_row *row, struct arena *a, struct store_end *out);

#endif
