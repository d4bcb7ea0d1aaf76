/* SPDX-License-Identifier: Apache-2.0
 * Curves of a job: the points of its log.jsonl, or of the progress bars of another trainer's output, thinned to what a
 * chart can show.  A log may have a gigabyte, so it
 * is read on a thread; of one that was read before only what is new. */
#include "base/str.h"
#include "web/answer.h"
#include "web/api.h"
#include "web/jobs.h"
#include "web/series_cache.h"
#include "web/task.h"
#include <stdlib.h>
#include <string.h>

enum { POINTS_MOST = 10000 };

struct reading {
    struct request *r;
    struct shared_series *series;
    const char *path;
    bool is_output; /* of another trainer */
    struct run_series_view view;
    struct str text;
    struct cairn_error err;
};

static void release(void *own)
{
    struct reading *k = own;
    if (k->series)
        series_give_back(k->r->web->series, k->series);
    str_release(&k->text);
    free(k);
}

/* On a thread. */
static void work(void *context)
{
    struct reading *k = context;
    struct run_series *s = series_lock(k->series);
    int r = k->is_output ? run_series_read_output(s, k->path, &k->err)
                         : run_series_read(s, k->path, k->view.metrics, &k->err);
    if (!r)
        run_series_write(s, &k->view, &k->text, &k->err);
    series_unlock(k->series);
}

static void done(void *context)
{
    struct reading *k = context;
    if (k->err.code) {
        answer_error(k->r, &k->err);
    } else {
        answer_json_text(k->r, 200, k->text.s, k->text.len, k->text.s);
        k->text = (struct str){ 0 };
    }
    request_wake(k->r);
}

/* A name that is no metric has no values. */
static unsigned parse_metrics(const char *wanted)
{
    unsigned out = 0;
    for (int m = 0; m < METRIC_COUNT; m++)
        if (str_list_has(wanted, ',', metric_key((enum metric)m)))
            out |= 1u << m;
    return out;
}

void api_job_series(struct request *r)
{
    struct job_row row;
    int64_t from, to, points;
    if (!jobs_find(r, &row) || !request_query_int(r, "from", 0, INT64_MAX, 0, &from) ||
        !request_query_int(r, "to", 0, INT64_MAX, INT64_MAX, &to) ||
        !request_query_int(r, "points", 1, POINTS_MOST, 2000, &points))
        return;
    const char *dir = jobs_training(r, &row), *wanted = request_query(r, "metrics");
    bool all = !wanted || !*wanted;
    struct run_series_view view = { .metrics = all ? RUN_SERIES_ALL : parse_metrics(wanted),
                                    .only_known = all,
                                    .from = (uint64_t)from,
                                    .to = (uint64_t)to,
                                    .points = (size_t)points };
    struct reading *k = calloc(1, sizeof(*k));
    if (!k)
        abort();
    *k = (struct reading){ .r = r, .is_output = !dir, .view = view };
    k->path = dir ? arena_printf(&r->arena, "%s/log.jsonl", dir)
                  : arena_printf(&r->arena, "%s/log", jobs_journal(r, &row));
    k->series = series_borrow(r->web->series, k->path);
    request_own(r, k, release);
    request_later(r);
    task_run(r->web->tasks, work, done, k);
}
