/* SPDX-License-Identifier: Apache-2.0
 * What happens to jobs, as events, once a second and only while a page asks for it.
 *
 *     jobs       job {…}: a job as GET /jobs lists it, whenever that differs from what was told before;
 *                job {uid, deleted}: it was removed, here or in a terminal; reset {}: the queue was paused or goes on
 *     job:UID    log {uid, offset, text}, series {uid, step}, sample {uid}, checkpoint {uid} */
#ifndef CAIRN_WEB_JOB_WATCH_H
#define CAIRN_WEB_JOB_WATCH_H

#include "job/queue.h"
#include "web/web.h"

struct job_watch;

/* is_open: whether the queue is. */
int job_watch_open(struct web *w, struct queue *q, const bool *is_open, struct job_watch **out,
                   struct cairn_error *err);
/* Accepts NULL. */
void job_watch_close(struct job_watch *w);
/* Tells a job now. */
void job_watch_tell(struct job_watch *w, const struct job_row *row);
/* Tells that it is gone. */
void job_watch_removed(struct job_watch *w, const char *uid);

#endif
