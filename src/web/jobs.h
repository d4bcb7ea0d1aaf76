/* SPDX-License-Identifier: Apache-2.0
 * The queue of jobs as the server uses it: opened once, healed every two seconds, watched while a page looks.
 *
 * The loop only reads the database, which does not wait for programs that write.  Handlers that write run on a
 * thread, one after the other, with a connection of their own, and so does the healing: while another program has
 * locked the database, they wait up to five seconds, and then answer 503, but nobody else waits. */
#ifndef CAIRN_WEB_JOBS_H
#define CAIRN_WEB_JOBS_H

#include "job/queue.h"
#include "web/request.h"
#include "web/web.h"

struct jobs;

int jobs_open(struct web *w, struct jobs **out, struct cairn_error *err);
/* Accepts NULL. */
void jobs_close(struct jobs *j);

/* Calls the handler on a thread.  It has the request for itself until it returns. */
void jobs_write(struct request *r, void (*run)(struct request *r));

/* The queue, that of the thread in a handler that writes; NULL after it answered 503. */
struct queue *jobs_queue(struct request *r);
/* Answers what the database failed with: 503 where another program has locked it. */
void jobs_answer_error(struct request *r, const struct cairn_error *err);
/* A job by the first part of the path, or a run that was started in a terminal; false after it answered 404. */
bool jobs_find(struct request *r, struct job_row *out);
/* In a handler that writes: lets the queue move on, and tells the pages about this job when it is done. */
void jobs_changed(struct request *r, const char *uid);
/* The same for a job that is gone. */
void jobs_removed(struct request *r, const char *uid);
/* The same by its uid, without an answer. */
bool jobs_get(struct request *r, const char *uid, struct job_row *out, struct cairn_error *err);
/* The journal of its last attempt, or that of a run. */
const char *jobs_journal(struct request *r, const struct job_row *row);
/* The folder of its training; NULL: it has none. */
const char *jobs_training(struct request *r, const struct job_row *row);

#endif
