/* SPDX-License-Identifier: Apache-2.0
 * Jobs of the queue, as JSON. */
#ifndef CAIRN_REPORT_JOBS_H
#define CAIRN_REPORT_JOBS_H

#include "base/json.h"
#include "job/queue.h"

/* One job, with its progress and whether it is alive; `full`: also its configuration, command and environment.
 * `into` NULL: a value of its own. */
struct json *report_job(const char *state, const struct job_row *row, bool full, struct json *into);
/* {"schema":1,"jobs":[…],"next":uid or null,"queue":{"paused","reason"}}.  next: there are older ones. */
struct json *report_jobs(const char *state, const struct job_row *rows, size_t n, bool more, bool paused);
/* The members behind the jobs. */
void report_jobs_end(struct json *top, const char *next, bool paused);

#endif
