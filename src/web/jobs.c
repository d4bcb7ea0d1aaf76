/* SPDX-License-Identifier: Apache-2.0 */
#include "web/jobs.h"

#include "base/str.h"
#include "job/adopt.h"
#include "job/job_dir.h"
#include "os/info.h"
#include "os/thread.h"
#include "report/jobs.h"
#include "run/journal.h"
#include "web/answer.h"
#include "web/job_watch.h"
#include "web/task.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long to wait for other programs.  Readers wait only while the database is made, or without a WAL. */
enum { READ_BUSY_MS = 200, WRITE_BUSY_MS = 5000, HEAL_S = 2 };

/* A connection to the database; it belongs to one thread at a time. */
struct line {
    pthread_mutex_t lock;
    struct facts facts; /* the GPUs; read again with the queue */
    struct queue queue;
    bool is_open;
    int busy_ms;
};

struct jobs {
    struct web *web;
    struct line reader; /* of the loop */
    struct line writer; /* of handlers that write */
    struct line healer;
    struct job_watch *watch;
    struct loop_timer *heal;
    bool healing;
};

/* A handler that writes, and what the pages have to be told afterwards. */
struct change {
    struct request *r;
    void (*run)(struct request *r);
    const char **uid; /* in the arena of the request */
    size_t n;
    const char *removed;
};

/* ---- connections ---- */

static void line_init(struct line *l, int busy_ms)
{
    *l = (struct line){ .busy_ms = busy_ms };
    pthread_mutex_init(&l->lock, NULL);
    l->facts.root.fd = -1;
}

static int line_open(struct line *l, const struct web *w, struct cairn_error *err)
{
    const struct facts_options fo = { .root = w->options->root,
                                      .env = (const char *const *)environ,
                                      .parts = FACTS_ALL };
    if (l->is_open)
        return queue_refresh(&l->queue, err);
    if (facts_read(&l->facts, &fo, err))
        return -1;
    const struct queue_options qo = {
        .state = w->state.home.path, .root = w->options->root, .facts = &l->facts, .busy_ms = l->busy_ms
    };
    if (queue_open(&qo, &l->queue, err)) {
        facts_release(&l->facts);
        return -1;
    }
    l->is_open = true;
    return 0;
}

static void line_close(struct line *l)
{
    if (l->is_open) {
        queue_close(&l->queue);
        facts_release(&l->facts);
    }
    pthread_mutex_destroy(&l->lock);
}

static struct line *line_of(struct request *r)
{
    return r->change ? &r->web->jobs->writer : &r->web->jobs->reader;
}

/* ---- healing ---- */

/* On a thread.  Trouble shows in the answers. */
static void heal_work(void *context)
{
    struct jobs *j = context;
    struct cairn_error ignored = { 0 };
    os_thread_own_folder();
    pthread_mutex_lock(&j->healer.lock);
    if (!line_open(&j->healer, j->web, &ignored) && !queue_heal(&j->healer.queue, &ignored) &&
        !j->web->read_only)
        queue_advance(&j->healer.queue, &ignored);
    pthread_mutex_unlock(&j->healer.lock);
}

static void heal_done(void *context)
{
    struct jobs *j = context;
    j->healing = false;
}

static void heal(void *context)
{
    struct jobs *j = context;
    struct cairn_error ignored = { 0 };
    bool was_open = j->reader.is_open;
    if (!line_open(&j->reader, j->web, &ignored) && !was_open && j->reader.queue.note)
        message_say(j->web->sink, "%s", j->reader.queue.note);
    if (j->healing)
        return;
    j->healing = true;
    task_run(j->web->writes, heal_work, heal_done, j);
}

/* ---- handlers that write ---- */

static bool is_locked(const struct line *l)
{
    return l->is_open && l->queue.store && store_was_locked(l->queue.store);
}

static void answer_later(struct request *r, const char *why, const char *hint)
{
    answer_problem_hint(r, 503, why, hint, 0);
    answer_header(r, "Retry-After", "2");
}

static void answer_locked(struct request *r)
{
    answer_later(r, "another program has locked the database of jobs", "try again");
}

static void change_work(void *context)
{
    struct change *k = context;
    struct line *l = line_of(k->r);
    os_thread_own_folder();
    pthread_mutex_lock(&l->lock);
    k->run(k->r);
    if ((k->r->answer.status == 500 || k->r->answer.status == 503) && is_locked(l))
        answer_locked(k->r);
    pthread_mutex_unlock(&l->lock);
}

static void change_done(void *context)
{
    struct change *k = context;
    struct request *r = k->r;
    struct jobs *j = r->web->jobs;
    struct cairn_error ignored = { 0 };
    struct job_row row;
    r->change = NULL;
    if (!line_open(&j->reader, j->web, &ignored))
        for (size_t i = 0; i < k->n; i++)
            if (!store_get(j->reader.queue.store, k->uid[i], &r->arena, &row, &ignored))
                job_watch_tell(j->watch, &row);
    if (k->removed)
        job_watch_removed(j->watch, k->removed);
    request_wake(r);
}

void jobs_write(struct request *r, void (*run)(struct request *r))
{
    struct change *k = arena_alloc(&r->arena, sizeof(*k));
    *k = (struct change){ .r = r, .run = run };
    r->change = k;
    request_later(r);
    task_run(r->web->writes, change_work, change_done, k);
}

void jobs_changed(struct request *r, const char *uid)
{
    struct cairn_error ignored = { 0 };
    queue_advance(&line_of(r)->queue, &ignored);
    if (r->change)
        *ARENA_PUSH(&r->arena, r->change->uid, r->change->n) = arena_strdup(&r->arena, uid);
}

void jobs_removed(struct request *r, const char *uid)
{
    if (r->change)
        r->change->removed = arena_strdup(&r->arena, uid);
}

/* ---- life ---- */

int jobs_open(struct web *w, struct jobs **out, struct cairn_error *err)
{
    struct jobs *j = calloc(1, sizeof(*j));
    if (!j)
        abort();
    j->web = w;
    line_init(&j->reader, READ_BUSY_MS);
    line_init(&j->writer, WRITE_BUSY_MS);
    line_init(&j->healer, WRITE_BUSY_MS);
    *out = j;
    if (job_watch_open(w, &j->reader.queue, &j->reader.is_open, &j->watch, err))
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
    line_close(&j->reader);
    line_close(&j->writer);
    line_close(&j->healer);
    free(j);
}

/* ---- what handlers use ---- */

void jobs_answer_error(struct request *r, const struct cairn_error *err)
{
    if (is_locked(line_of(r)))
        answer_locked(r);
    else
        answer_error(r, err);
}

struct queue *jobs_queue(struct request *r)
{
    struct line *l = line_of(r);
    struct cairn_error err = { 0 };
    if (!line_open(l, r->web, &err))
        return &l->queue;
    answer_later(r, err.msg, err.hint);
    return NULL;
}

bool jobs_get(struct request *r, const char *uid, struct job_row *out, struct cairn_error *err)
{
    struct line *l = line_of(r);
    bool has;
    if (!job_uid_is_valid(uid) || line_open(l, r->web, err) || store_has(l->queue.store, uid, &has, err))
        return false;
    if (has)
        return !store_get(l->queue.store, uid, &r->arena, out, err);
    return adopt_find(&l->queue.adopted, l->queue.o.state, uid, &r->arena, out);
}

bool jobs_find(struct request *r, struct job_row *out)
{
    struct cairn_error err = { 0 };
    if (!jobs_queue(r))
        return false;
    if (jobs_get(r, r->part[0], out, &err))
        return true;
    if (err.code)
        jobs_answer_error(r, &err);
    else
        answer_problem_hint(r, 404, "there is no such job", "it may have been removed", 0);
    return false;
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
