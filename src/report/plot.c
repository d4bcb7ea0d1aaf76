/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot.h"

#include <math.h>

struct run_figures run_figures(const struct series *s)
{
    return (struct run_figures){
        .loss = series_last(s, METRIC_LOSS),
        .best = series_least(s, METRIC_LOSS),
        .val = series_last(s, METRIC_VAL_LOSS),
        .best_val = series_least(s, METRIC_VAL_LOSS),
        .memory = series_most(s, METRIC_MEM_BYTES),
        .time = series_last(s, METRIC_ELAPSED_S),
        .tokens_per_s = series_mean(s, METRIC_TOKENS_PER_S),
        .steps = s->n ? s->point[s->n - 1].step : 0,
    };
}

static void add_figure(struct json *o, const char *key, const struct step_record *m, enum metric which)
{
    if (m && isfinite(m->value[which]))
        json_add_real(o, key, m->value[which]);
    else
        json_add_null(o, key);
}

static void add_run(struct json *list, const struct run_curves *r)
{
    struct run_figures s = run_figures(&r->series);
    struct json *o = json_add_object(list, NULL);
    json_add_text(o, "name", r->name);
    json_add_text(o, "dir", r->dir);
    json_add_int(o, "steps", (int64_t)s.steps);
    add_figure(o, "loss", s.loss, METRIC_LOSS);
    add_figure(o, "best_loss", s.best, METRIC_LOSS);
    if (s.best)
        json_add_int(o, "best_loss_step", (int64_t)s.best->step);
    else
        json_add_null(o, "best_loss_step");
    add_figure(o, "val_loss", s.val, METRIC_VAL_LOSS);
    add_figure(o, "best_val_loss", s.best_val, METRIC_VAL_LOSS);
    if (isfinite(s.tokens_per_s))
        json_add_real(o, "tokens_per_s", s.tokens_per_s);
    else
        json_add_null(o, "tokens_per_s");
    add_figure(o, "peak_mem_bytes", s.memory, METRIC_MEM_BYTES);
    add_figure(o, "time_s", s.time, METRIC_ELAPSED_S);
    json_add_int(o, "bad_lines", (int64_t)r->series.bad_lines);
}

struct json *report_plot(const struct run_curves *runs, size_t n, const char *svg)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "svg", svg);
    struct json *list = json_add_array(top, "runs");
    for (size_t i = 0; i < n; i++)
        add_run(list, &runs[i]);
    return top;
}
