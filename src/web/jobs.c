/* SPDX-License-Identifier: Apache-2.0 */
#include "web/jobs.h"

#include "base/str.h"
#include "job/adopt.h"
#include "job/job_dir.h"
#include "os/info.h"
#include "report/jobs.h"
#include "run/journal.h"
#include "web/answer.h"
#include "web/job_watch.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A lock that another program holds for longer is an answer, not a wait. */
enum { BUSY_MS = 1000, HEAL_S = 2 };

struct jobs {
    struct web *web;
    struct facts facts; /* the GPUs; read again with the queue */
    struct queue queue;
    bool is_open;
    struct job_watch *watch;
    struct loop_timer *heal;
};

static int open_queue(struct jobs *j, struct cairn_error *err)
{
    struct web *w = j->web;
    const struct facts_options fo = { .root = w->options->root,
                                      .env = (const char *const *)environ,
                                      .parts = FACTS_ALL };
    if (j->is_open)
        return 0;
    if (facts_read(&j->facts, &fo, err))
        return -1;
    const struct queue_options qo = {
        .state = w->state.home.path, .root = w->options->root, .facts = &j->facts, .busy_ms = BUSY_MS
    };
    if (queue_open(&qo, &j->queue, err)) {
        facts_release(&j->facts);
        return -1;
    }
    j->is_open = true;
    if (j->queue.note)
        message_say(w->sink, "%s", j->queue.note);
    return 0;
}

/* Trouble shows in the answers; it is said here only when it begins. */
static void heal(void *context)
{
    struct jobs *j = context;
    struct cairn_error ignored = { 0 };
    if (!open_queue(j, &ignored) && !queue_heal(&j->queue, &ignored) && !j->web->read_only)
        queue_advance(&j->queue, &ignored);
}

int jobs_open(struct web *w, struct jobs **out, struct cairn_error *err)
{
    struct jobs *j = calloc(1, sizeof(*j));
    if (!j)
        abort();
    j->web = w;
    j->facts.root.fd = -1;
    *out = j;
    if (job_watch_open(w, &j->queue, &j->is_open, &j->watch, err))
        return -1;
    loop_after(w->loop, 0, heal, j);
    j->heal = loop_every(w->loop, HEAL_S, heal, j);
    return 0;
}

void jobs_close(struct jobs *j)
{
    if (!j)
        return;
    loop_cancel(j->web->loop, j->heal);
    job_watch_close(j->watch);
    if (j->is_open) {
        queue_close(&j->queue);
        facts_release(&j->facts);
    }
    free(j);
}

struct queue *jobs_queue(struct request *r)
{
    struct jobs *j = r->web->jobs;
    struct cairn_error err = { 0 };
    if (!open_queue(j, &err) && !queue_refresh(&j->queue, &err))
        return &j->queue;
    answer_problem_hint(r, 503, err.msg, err.hint, 0);
    return NULL;
}

bool jobs_get(struct request *r, const char *uid, struct job_row *out, struct cairn_error *err)
{
    struct jobs *j = r->web->jobs;
    bool has;
    if (!job_uid_is_valid(uid) || open_queue(j, err) || store_has(j->queue.store, uid, &has, err))
        return false;
    if (has)
        return !store_get(j->queue.store, uid, &r->arena, out, err);
    return adopt_find(j->queue.o.state, uid, &r->arena, out);
}

bool jobs_find(struct request *r, struct job_row *out)
{
    struct cairn_error err = { 0 };
    if (!jobs_queue(r))
        return false;
    if (jobs_get(r, r->part[0], out, &err))
        return true;
    if (err.code)
        answer_error(r, &err);
    else
        answer_problem_hint(r, 404, "there is no such job", "it may have been removed", 0);
    return false;
}

void jobs_changed(struct request *r, const char *uid)
{
    struct jobs *j = r->web->jobs;
    struct cairn_error ignored = { 0 };
    struct job_row row;
    queue_advance(&j->queue, &ignored);
    if (!store_get(j->queue.store, uid, &r->arena, &row, &ignored))
        job_watch_tell(j->watch, &row);
}

void jobs_removed(struct request *r, const char *uid)
{
    job_watch_removed(r->web->jobs->watch, uid);
}

const char *jobs_journal(struct request *r, const struct job_row *row)
{
    return row->adopted ? row->run_dir : job_dir_attempt(r->web->state.home.path, row, &r->arena);
}

const char *jobs_training(struct request *r, const struct job_row *row)
{
    if (row->adopted && row->kind == JOB_TRAIN)
        return row->run_dir;
    const char *named = journal_training(jobs_journal(r, row), &r->arena);
    return named ? named : row->adopted ? NULL : row->run_dir;
}
