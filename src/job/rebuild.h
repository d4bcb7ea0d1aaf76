/* SPDX-License-Identifier: Apache-2.0
 * Fills the database from the folders of the jobs: their job.json, configurations, journals and locks. */
#ifndef CAIRN_JOB_REBUILD_H
#define CAIRN_JOB_REBUILD_H

#include "base/arena.h"
#include "base/error.h"
#include "job/store.h"
#include <stddef.h>

struct rebuild_result {
    size_t n_jobs;        /* that were added */
    const char **skipped; /* sentences about folders that could not be read */
    size_t n_skipped;
    const char *old; /* where the damaged database is now; NULL: there was none */
};

/* Adds the jobs that have a folder and no row.  One that runs is active, one that began has ended as its files
 * say, and any other is a draft, since nobody knows whether it was to run.  As `fill` of store.h. */
struct rebuild_source {
    const char *state;
    struct arena *arena;
    struct rebuild_result *result; /* counts on */
};
int rebuild_rows(void *source, struct store *s, struct cairn_error *err);
/* The same for the database of the state folder.  If that is damaged, it is renamed and a new one made. */
int rebuild(const char *state, struct arena *a, struct rebuild_result *out, struct cairn_error *err);

#endif
