/* SPDX-License-Identifier: Apache-2.0
 * What a user does with jobs, from the command line or from the page: add, start, stop, edit, order; and what
 * keeps the queue alive without a server.
 *
 * The queue moves on by itself: whoever adds a job, ends one or looks at the list calls queue_advance, which
 * claims the next job of each free GPU and starts its supervisor (exec.h).  Whoever looks calls queue_heal
 * first, which sets right the rows whose supervisor died.  Neither needs a server. */
#ifndef CAIRN_JOB_QUEUE_H
#define CAIRN_JOB_QUEUE_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"
#include "job/adopt_memory.h"
#include "job/job_row.h"
#include "job/store.h"

struct queue_options {
    const char *state;         /* the state folder */
    const char *root;          /* --root of the supervisors; NULL: none */
    const struct facts *facts; /* the GPUs; must outlive the queue */
    int busy_ms;               /* see store.h */
};

struct queue {
    struct queue_options o;
    struct store *store;
    const char *note;            /* what store_open had to say; NULL: nothing */
    struct adopt_memory adopted; /* for adopt_list: runs of a terminal that ended */
    struct arena arena;
};

int queue_open(const struct queue_options *o, struct queue *out, struct cairn_error *err);
void queue_close(struct queue *q);
/* Opens the database again if its file was removed or replaced, for programs that run for long.  queue_heal calls
 * it. */
int queue_refresh(struct queue *q, struct cairn_error *err);

/* ---- adding ---- */

/* A new job.  Set name, kind, config or argv, cwd, env (environment.h), options, gpu, note and parent of the row;
 * a name that is NULL is made from the command.  Without `start` it is a draft. */
int queue_add(struct queue *q, const struct job_row *wish, bool start, struct arena *a, struct job_row *out,
              struct cairn_error *err);
/* A copy of a job as a draft. */
int queue_clone(struct queue *q, const char *uid, struct arena *a, struct job_row *out,
                struct cairn_error *err);
/* A job out of a run that was started in a terminal (adopt.h): a draft that repeats it, or one in the queue that goes
 * on with it after it has ended.  Native training then belongs to the job alone.  `env` as in a wish. */
int queue_adopt(struct queue *q, const struct job_row *run, bool goes_on, const char *env, struct arena *a,
                struct job_row *out, struct cairn_error *err);
/* See store_edit.  Also writes the job's folder.  A conflict or a running job fails with CAIRN_EUSAGE:
 * *conflict says which. */
int queue_edit(struct queue *q, const char *uid, int64_t version, const struct store_edit *e, bool *conflict,
               struct cairn_error *err);
/* Removes a job that does not run; its folder goes to the trash.  With `with_run` so does the folder of its training,
 * to .cairn-trash beside it, unless another job has the same. */
int queue_remove(struct queue *q, const char *uid, bool with_run, struct cairn_error *err);

/* ---- life.  All can be repeated: a job that is already so stays so.  What makes no sense fails with
 * CAIRN_EUSAGE, the reason and a remedy. ---- */

/* Draft or ended → queued.  One that has a checkpoint goes on from it. */
int queue_start(struct queue *q, const char *uid, struct cairn_error *err);
/* The same, but fails if nobody knows how to go on from where it stopped. */
int queue_resume(struct queue *q, const char *uid, struct cairn_error *err);
/* Asks a running job to save and end; takes a waiting one from the queue. */
int queue_stop(struct queue *q, const char *uid, struct cairn_error *err);
/* The same, and it keeps its place.  Only where resuming is known. */
int queue_pause(struct queue *q, const char *uid, struct cairn_error *err);
/* Ends all its processes at once. */
int queue_kill(struct queue *q, const char *uid, struct cairn_error *err);
/* Gives up on processes that do not die; their GPU stays taken until they are gone. */
int queue_abandon(struct queue *q, const char *uid, struct cairn_error *err);
/* Whether its next start would go on from a checkpoint, and why or why not, a sentence. */
bool queue_can_resume(const struct queue *q, const struct job_row *row, struct arena *a, const char **why);
/* Whether pausing and resuming make sense for a job as it is. */
bool queue_is_resumable(const struct job_row *row);

/* ---- the queue as a whole ---- */

int queue_set_paused(struct queue *q, bool paused, struct cairn_error *err);
int queue_is_paused(struct queue *q, bool *paused, struct cairn_error *err);
/* Whether a job waits until no other program uses its GPU; it does unless that was set otherwise. */
int queue_set_wait(struct queue *q, bool wait, struct cairn_error *err);
int queue_waits(struct queue *q, bool *wait, struct cairn_error *err);
/* So often a job may be claimed without beginning, before it has failed. */
enum { QUEUE_MOST_CLAIMS = 3 };
/* Sets right the rows whose supervisor died. */
int queue_heal(struct queue *q, struct cairn_error *err);
/* Starts what can start. */
int queue_advance(struct queue *q, struct cairn_error *err);

#endif
