/* SPDX-License-Identifier: Apache-2.0
 * Curves of a job: the points of its log.jsonl, thinned to what a chart can show. */
#include "base/str.h"
#include "os/info.h"
#include "record/series.h"
#include "web/answer.h"
#include "web/api.h"
#include "web/jobs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS_MOST = 10000, KEPT = 4 };

/* The logs that were asked for last, as they were read. */
static struct kept {
    char *path;
    struct os_info info;
    struct series series;
    unsigned used;
} kept[KEPT];
static unsigned uses;

static void forget(struct kept *k)
{
    free(k->path);
    series_release(&k->series);
    *k = (struct kept){ 0 };
}

/* Reads the log again only if it has changed. */
static const struct series *read_log(const char *path, struct cairn_error *err)
{
    struct kept *k = &kept[0];
    struct os_info now;
    if (os_info(path, &now))
        return NULL;
    for (size_t i = 0; i < KEPT; i++) {
        if (kept[i].path && !strcmp(kept[i].path, path)) {
            k = &kept[i];
            break;
        }
        if (kept[i].used < k->used)
            k = &kept[i];
    }
    k->used = ++uses;
    if (k->path && !strcmp(k->path, path) && os_info_is_unchanged(&k->info, &now))
        return &k->series;
    forget(k);
    if (series_read(path, &k->series, err))
        return NULL;
    k->path = strdup(path);
    k->info = now;
    k->used = uses;
    return &k->series;
}

/* Steps from..to in groups of points: each has the last step of its group. */
struct groups {
    const struct series *s;
    size_t first, end, size;
};

static struct groups group(const struct series *s, uint64_t from, uint64_t to, size_t points)
{
    struct groups g = { .s = s, .end = s->n };
    while (g.first < s->n && s->point[g.first].step < from)
        g.first++;
    while (g.end > g.first && s->point[g.end - 1].step > to)
        g.end--;
    g.size = (g.end - g.first + points - 1) / points;
    g.size = g.size ? g.size : 1;
    return g;
}

static void add_value(struct json *list, double v, bool known)
{
    if (known && isfinite(v))
        json_add_real(list, NULL, v);
    else
        json_add_null(list, NULL);
}

static void add_metric(struct json *metrics, const struct groups *g, enum metric which)
{
    struct json *o = json_add_object(metrics, metric_key(which)), *least = json_add_array(o, "min"),
                *most = json_add_array(o, "max"), *mean = json_add_array(o, "mean");
    for (size_t at = g->first; at < g->end; at += g->size) {
        double lo = INFINITY, hi = -INFINITY, sum = 0;
        size_t n = 0;
        for (size_t i = at; i < at + g->size && i < g->end; i++) {
            double v = g->s->point[i].value[which];
            if (!step_record_has(&g->s->point[i], which) || !isfinite(v))
                continue;
            lo = v < lo ? v : lo;
            hi = v > hi ? v : hi;
            sum += v;
            n++;
        }
        add_value(least, lo, n > 0);
        add_value(most, hi, n > 0);
        add_value(mean, n ? sum / (double)n : 0, n > 0);
    }
}

static bool has_metric(const struct groups *g, enum metric which)
{
    for (size_t i = g->first; i < g->end; i++)
        if (step_record_has(&g->s->point[i], which))
            return true;
    return false;
}

static void add_events(struct json *v, const struct groups *g)
{
    struct json *list = json_add_array(v, "events");
    for (size_t i = g->first; i < g->end; i++)
        if (g->s->point[i].event) {
            struct json *o = json_add_object(list, NULL);
            json_add_int(o, "step", (int64_t)g->s->point[i].step);
            json_add_text(o, "event", g->s->point[i].event);
            json_add_text(o, "note", g->s->point[i].note);
        }
}

static struct json *report(const struct groups *g, const char *wanted)
{
    struct json *v = answer_new(), *steps = json_add_array(v, "step");
    for (size_t at = g->first; at < g->end; at += g->size) {
        size_t last = at + g->size < g->end ? at + g->size - 1 : g->end - 1;
        json_add_int(steps, NULL, (int64_t)g->s->point[last].step);
    }
    struct json *metrics = json_add_object(v, "metrics");
    for (int m = 0; m < METRIC_COUNT; m++)
        if (wanted ? str_list_has(wanted, ',', metric_key((enum metric)m)) : has_metric(g, (enum metric)m))
            add_metric(metrics, g, (enum metric)m);
    add_events(v, g);
    json_add_int(v, "last_step", g->s->n ? (int64_t)g->s->point[g->s->n - 1].step : 0);
    return v;
}

void api_job_series(struct request *r)
{
    static const struct series nothing;
    struct job_row row;
    struct cairn_error err = { 0 };
    int64_t from, to, points;
    if (!jobs_find(r, &row) || !request_query_int(r, "from", 0, INT64_MAX, 0, &from) ||
        !request_query_int(r, "to", 0, INT64_MAX, INT64_MAX, &to) ||
        !request_query_int(r, "points", 1, POINTS_MOST, 2000, &points))
        return;
    const char *dir = jobs_training(r, &row), *wanted = request_query(r, "metrics");
    const struct series *s = dir ? read_log(arena_printf(&r->arena, "%s/log.jsonl", dir), &err) : NULL;
    if (!s && err.code) {
        answer_error(r, &err);
        return;
    }
    struct groups g = group(s ? s : &nothing, (uint64_t)from, (uint64_t)to, (size_t)points);
    answer_json(r, 200, report(&g, wanted && *wanted ? wanted : NULL));
}
