/* SPDX-License-Identifier: Apache-2.0
 * What the pages were told of each job, so that only changes are told, and jobs that are gone are noticed. */
#ifndef CAIRN_WEB_JOB_TOLD_H
#define CAIRN_WEB_JOB_TOLD_H

#include "job/job_row.h"
#include <stddef.h>

struct told {
    char uid[JOB_UID_SIZE];
    uint64_t report; /* hash of the event */
    uint64_t row;    /* hash of what the database has; 0: unknown */
    uint64_t round;  /* when it was seen last */
};

struct job_told {
    struct told *job; /* by uid */
    size_t n, room;
};

void job_told_release(struct job_told *t);
/* The entry of a job, which is made if there is none; valid until the next call. */
struct told *job_told_of(struct job_told *t, const char *uid);
void job_told_forget(struct job_told *t, const char *uid);
/* Of all that is told of a job which neither runs nor has a process left: nothing else than the database changes it,
 * or of a run of a terminal its files.  0: it may change otherwise. */
uint64_t job_told_hash(const struct job_row *row);

#endif
