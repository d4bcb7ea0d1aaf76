/* SPDX-License-Identifier: Apache-2.0 */
#include "web/job_watch.h"

#include "base/hash.h"
#include "base/str.h"
#include "job/adopt.h"
#include "job/job_dir.h"
#include "job/progress.h"
#include "os/file.h"
#include "os/info.h"
#include "report/jobs.h"
#include "run/journal.h"
#include "run/log_parts.h"
#include "web/job_told.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = 200, LIVE_ROWS = 2000, MOST_JOBS = 32, PIECE = 64 << 10 };

/* A job whose topic is watched. */
struct watched {
    char uid[JOB_UID_SIZE];
    int64_t attempt;
    uint64_t log_bytes, samples_bytes;
    int64_t step, checkpoint_ns;
    bool begun;
};

struct job_watch {
    struct web *web;
    struct queue *queue;
    const bool *is_open;
    struct loop_timer *timer; /* NULL: nobody watches */
    bool list;                /* the topic "jobs" is watched */
    struct watched job[MOST_JOBS];
    size_t n;
    struct job_told told;
    uint64_t round;            /* counts looks at the list */
    bool paused, knows_paused; /* the queue, as the pages know it */
};

/* ---- the list ---- */

static void publish_job(struct job_watch *w, struct told *t, const struct job_row *row)
{
    CLEANUP(json_cleanup) struct json *v = report_job(w->queue->o.state, row, false, NULL);
    CLEANUP(mem_free) char *text = json_to_string(v);
    uint64_t hash = hash_bytes(text, strlen(text));
    if (hash == t->report)
        return;
    t->report = hash;
    events_publish(w->web->events, "jobs", "job", text, EVENTS_KEEP);
}

/* Progress is read from files, so a job that waits or has ended is compared by its row first. */
static void tell(struct job_watch *w, const struct job_row *row)
{
    struct told *t = job_told_of(&w->told, row->uid);
    uint64_t hash = job_told_hash(row);
    t->round = w->round;
    if (hash && hash == t->row)
        return;
    t->row = hash;
    publish_job(w, t, row);
}

void job_watch_tell(struct job_watch *w, const struct job_row *row)
{
    tell(w, row);
}

void job_watch_removed(struct job_watch *w, const char *uid)
{
    struct json *v = json_new_object();
    json_add_text(v, "uid", uid);
    json_add_bool(v, "deleted", true);
    events_publish_json(w->web->events, "jobs", "job", v, EVENTS_KEEP);
    job_told_forget(&w->told, uid);
}

/* Those that were not seen this time are gone, or too old to be looked at. */
static int tell_removed(struct job_watch *w, struct arena *a, struct cairn_error *err)
{
    for (size_t i = w->told.n; i-- > 0;) {
        struct job_row row;
        bool has;
        if (w->told.job[i].round == w->round)
            continue;
        const char *uid = arena_strdup(a, w->told.job[i].uid);
        if (store_has(w->queue->store, uid, &has, err))
            return -1;
        if (has || adopt_find(&w->queue->adopted, w->queue->o.state, uid, a, &row))
            job_told_forget(&w->told, uid);
        else
            job_watch_removed(w, uid);
    }
    return 0;
}

static int look_at_rows(struct job_watch *w, const struct store_query *query, struct arena *a,
                        struct cairn_error *err)
{
    struct job_row *rows;
    size_t n;
    if (store_list(w->queue->store, query, a, &rows, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        tell(w, &rows[i]);
    return 0;
}

static int look_at_runs(struct job_watch *w, struct arena *a, struct cairn_error *err)
{
    struct job_row *rows;
    size_t n;
    if (adopt_list(&w->queue->adopted, w->queue->o.state, a, &rows, &n, err))
        return -1;
    for (size_t i = 0; i < n && i < ROWS; i++)
        tell(w, &rows[i]);
    return 0;
}

/* No event has the state of the queue as a whole: the pages fetch it anew. */
static int look_at_queue(struct job_watch *w, struct cairn_error *err)
{
    bool paused;
    if (queue_is_paused(w->queue, &paused, err))
        return -1;
    if (w->knows_paused && paused != w->paused)
        events_publish(w->web->events, "jobs", "reset", "{}", EVENTS_KEEP);
    w->paused = paused;
    w->knows_paused = true;
    return 0;
}

/* The newest, and what runs or waits, however old it is. */
static void look_at_list(struct job_watch *w, struct arena *a)
{
    const struct store_query newest = { .limit = ROWS }, live = {
        .states = 1u << JOB_QUEUED | 1u << JOB_PAUSED | 1u << JOB_STARTING | 1u << JOB_ACTIVE,
        .limit = LIVE_ROWS,
    };
    struct cairn_error ignored;
    w->round++;
    if (!look_at_rows(w, &newest, a, &ignored) && !look_at_rows(w, &live, a, &ignored) &&
        !look_at_runs(w, a, &ignored) && !tell_removed(w, a, &ignored))
        look_at_queue(w, &ignored);
}

/* ---- one job ---- */

static void publish(struct job_watch *w, const struct watched *j, const char *name, struct json *v)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    json_add_text(v, "uid", j->uid);
    events_publish_json(w->web->events, arena_printf(&a, "job:%s", j->uid), name, v, EVENTS_KEEP);
}

/* The new bytes of a log, up to the last whole line if there is one. */
static void look_at_log(struct job_watch *w, struct watched *j, const char *path)
{
    CLEANUP(log_parts_close) struct log_parts p = LOG_PARTS_NONE;
    if (log_parts_open(&p, path))
        return;
    if (!j->begun || p.total < j->log_bytes)
        j->log_bytes = p.total;
    while ((j->log_bytes = log_parts_at(&p, j->log_bytes)) < p.total) {
        char text[PIECE + 1];
        ssize_t n = log_parts_read(&p, j->log_bytes, text, PIECE);
        if (n <= 0)
            return;
        for (ssize_t end = n; end > 0; end--)
            if (text[end - 1] == '\n') {
                n = end;
                break;
            }
        text[n] = '\0';
        struct json *v = json_new_object();
        json_add_int(v, "offset", (int64_t)j->log_bytes);
        json_add_text(v, "text", text);
        publish(w, j, "log", v);
        j->log_bytes += (uint64_t)n;
    }
}

static void look_at_training(struct job_watch *w, struct watched *j, const char *dir, struct arena *a)
{
    struct job_progress p;
    struct os_info samples = { 0 }, latest = { 0 };
    job_progress_of_run(dir, &p);
    if (os_info(arena_printf(a, "%s/samples/index.jsonl", dir), &samples))
        samples.size = 0;
    if (os_info_link(arena_printf(a, "%s/checkpoints/latest", dir), &latest))
        latest.modified_ns = 0;
    if (j->begun && p.step != j->step) {
        struct json *v = json_new_object();
        json_add_int(v, "step", p.step);
        publish(w, j, "series", v);
    }
    if (j->begun && samples.size != j->samples_bytes)
        publish(w, j, "sample", json_new_object());
    if (j->begun && latest.modified_ns != j->checkpoint_ns)
        publish(w, j, "checkpoint", json_new_object());
    j->step = p.step;
    j->samples_bytes = samples.size;
    j->checkpoint_ns = latest.modified_ns;
}

/* Another trainer, whose curve comes from its output. */
static void look_at_output(struct job_watch *w, struct watched *j, const char *log, uint64_t bytes_before)
{
    struct job_progress p;
    if (j->begun && j->log_bytes == bytes_before)
        return;
    job_progress_of_log(log, &p);
    if (j->begun && p.step >= 0 && p.step != j->step) {
        struct json *v = json_new_object();
        json_add_int(v, "step", p.step);
        publish(w, j, "series", v);
    }
    j->step = p.step;
}

static bool find(struct job_watch *w, const char *uid, struct arena *a, struct job_row *row)
{
    struct cairn_error ignored;
    return !store_get(w->queue->store, uid, a, row, &ignored) ||
           adopt_find(&w->queue->adopted, w->queue->o.state, uid, a, row);
}

static void look_at_job(struct job_watch *w, struct watched *j, struct arena *a)
{
    struct job_row row;
    if (!find(w, j->uid, a, &row))
        return;
    if (j->attempt != row.attempt) {
        j->log_bytes = 0; /* another journal */
        j->attempt = row.attempt;
    }
    const char *journal = row.adopted ? row.run_dir : job_dir_attempt(w->queue->o.state, &row, a);
    const char *training = row.adopted && row.kind == JOB_TRAIN ? row.run_dir : journal_training(journal, a);
    const char *log = arena_printf(a, "%s/log", journal);
    uint64_t before = j->log_bytes;
    look_at_log(w, j, log);
    if (training)
        look_at_training(w, j, training, a);
    else
        look_at_output(w, j, log, before);
    j->begun = true;
}

/* ---- who watches ---- */

static void look(void *context)
{
    struct job_watch *w = context;
    CLEANUP(arena_release) struct arena a = { 0 };
    if (!*w->is_open || !w->queue->store)
        return;
    if (w->list)
        look_at_list(w, &a);
    for (size_t i = 0; i < w->n; i++)
        look_at_job(w, &w->job[i], &a);
}

/* What there is at this moment is known to whoever asks after it; whatever comes later is told. */
static void watch_job(struct job_watch *w, const char *uid, bool watched)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    size_t i = 0;
    while (i < w->n && strcmp(w->job[i].uid, uid))
        i++;
    if (watched && i == w->n && w->n < MOST_JOBS && job_uid_is_valid(uid)) {
        struct watched *j = &w->job[w->n++];
        *j = (struct watched){ .attempt = -1 };
        snprintf(j->uid, sizeof(j->uid), "%s", uid);
        if (*w->is_open && w->queue->store)
            look_at_job(w, j, &a);
    } else if (!watched && i < w->n)
        w->job[i] = w->job[--w->n];
}

static void changed(void *context, const char *topic, bool watched)
{
    struct job_watch *w = context;
    if (str_starts(topic, "job:"))
        watch_job(w, topic + strlen("job:"), watched);
    else if (!strcmp(topic, "jobs"))
        w->list = watched;
    bool any = w->list || w->n;
    if (any && !w->timer)
        w->timer = loop_every(w->web->loop, 1, look, w);
    if (!any && w->timer) {
        loop_cancel(w->web->loop, w->timer);
        w->timer = NULL;
    }
}

int job_watch_open(struct web *w, struct queue *q, const bool *is_open, struct job_watch **out,
                   struct cairn_error *err)
{
    (void)err;
    struct job_watch *made = calloc(1, sizeof(*made));
    if (!made)
        abort();
    made->web = w;
    made->queue = q;
    made->is_open = is_open;
    events_on_watch(w->events, changed, made);
    *out = made;
    return 0;
}

void job_watch_close(struct job_watch *w)
{
    if (!w)
        return;
    if (w->timer)
        loop_cancel(w->web->loop, w->timer);
    job_told_release(&w->told);
    free(w);
}
