/* SPDX-License-Identifier: Apache-2.0
 * Makes the database anew from the folders of the jobs: their job.json, configurations and journals. */
#ifndef CAIRN_JOB_REBUILD_H
#define CAIRN_JOB_REBUILD_H

#include "base/arena.h"
#include "base/error.h"
#include <stddef.h>

struct rebuild_result {
    size_t n_jobs;
    const char **skipped; /* sentences about folders that could not be read */
    size_t n_skipped;
    const char *old; /* where the old database is now; NULL: there was none */
};

int rebuild(const char *state, struct arena *a, struct rebuild_result *out, struct cairn_error *err);

#endif
