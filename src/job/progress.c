/* SPDX-License-Identifier: Apache-2.0 */
#include "job/progress.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "job/job_dir.h"
#include "record/runs.h"
#include "record/series.h"
#include "run/journal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TAIL_BYTES = 64 << 10 };

const struct job_progress job_progress_unknown = { -1, -1, false, 0, -1, -1, -1 };

static void estimate(struct job_progress *p)
{
    if (p->eta_s < 0 && p->s_per_it > 0 && p->step >= 0 && p->steps >= p->step)
        p->eta_s = p->s_per_it * (double)(p->steps - p->step);
}

/* ---- native training ---- */

/* Over the last steps; an evaluation or a checkpoint in between counts. */
static double speed(const struct series *s)
{
    const struct step_record *last = s->n ? &s->point[s->n - 1] : NULL, *first = NULL;
    for (size_t i = s->n > 64 ? s->n - 64 : 0; i < s->n && !first; i++)
        if (step_record_has(&s->point[i], METRIC_ELAPSED_S))
            first = &s->point[i];
    if (!first || first == last || !step_record_has(last, METRIC_ELAPSED_S) || last->step <= first->step)
        return last && step_record_has(last, METRIC_S_PER_IT) ? last->value[METRIC_S_PER_IT] : -1;
    return (last->value[METRIC_ELAPSED_S] - first->value[METRIC_ELAPSED_S]) /
           (double)(last->step - first->step);
}

void job_progress_of_run(const char *run_dir, struct job_progress *out)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(series_release) struct series s = { 0 };
    struct run_info info;
    struct cairn_error ignored;
    *out = job_progress_unknown;
    if (!run_info_read(run_dir, &a, &info, &ignored) && info.steps)
        out->steps = (int64_t)info.steps;
    if (series_read_tail(arena_printf(&a, "%s/log.jsonl", run_dir), TAIL_BYTES, &s, &ignored) || !s.n)
        return;
    const struct step_record *loss = series_last(&s, METRIC_LOSS), *mem = series_last(&s, METRIC_MEM_BYTES);
    out->step = (int64_t)s.point[s.n - 1].step;
    out->has_loss = loss != NULL;
    out->loss = loss ? loss->value[METRIC_LOSS] : 0;
    out->mem_bytes = mem ? (int64_t)mem->value[METRIC_MEM_BYTES] : -1;
    out->s_per_it = speed(&s);
    estimate(out);
}

/* ---- another trainer's log ---- */

void job_progress_of_log(const char *path, struct job_progress *out)
{
    CLEANUP(mem_free) char *text = malloc(TAIL_BYTES);
    job_progress_of_text(text, text ? file_read_tail(path, text, TAIL_BYTES) : 0, out);
}

/* ---- of a job ---- */

static void of_kept(const char *options, struct job_progress *out)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored;
    *out = job_progress_unknown;
    if (!options || json_parse(options, strlen(options), &v, &ignored))
        return;
    const struct json *last = json_get(v, "last"), *loss = json_get(last, "loss");
    out->step = json_int(json_get(last, "step"), -1);
    out->steps = json_int(json_get(last, "steps"), -1);
    out->has_loss = loss != NULL;
    out->loss = json_number(loss, NAN);
    out->s_per_it = json_number(json_get(last, "s_per_it"), -1);
    out->mem_bytes = json_int(json_get(last, "mem_bytes"), -1);
}

static void of_files(const char *state, const struct job_row *row, const char *run_dir, struct arena *a,
                     struct job_progress *out)
{
    const char *journal = job_dir_attempt(state, row, a);
    if (!run_dir)
        run_dir = journal_training(journal, a);
    if (!run_dir && row->kind == JOB_TRAIN)
        run_dir = row->run_dir; /* of the attempt before */
    if (run_dir)
        job_progress_of_run(run_dir, out);
    else
        job_progress_of_log(arena_printf(a, "%s/log", journal), out);
}

void job_progress_read(const char *state, const struct job_row *row, struct job_progress *out)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    if (job_state_is_running(row->state))
        of_files(state, row, NULL, &a, out);
    else
        of_kept(row->options, out);
}

const char *job_progress_keep(const char *state, const struct job_row *row, const char *run_dir,
                              struct arena *a)
{
    CLEANUP(json_cleanup) struct json *was = NULL, *now = json_new_object();
    struct cairn_error ignored;
    struct job_progress p;
    of_files(state, row, run_dir, a, &p);
    if (row->options && !json_parse(row->options, strlen(row->options), &was, &ignored))
        for (struct json_member m = json_first(was); m.key; m = json_next(was, m))
            if (strcmp(m.key, "last") != 0)
                json_add_copy(now, m.key, m.value);
    if (p.step >= 0) {
        struct json *last = json_add_object(now, "last");
        json_add_int(last, "step", p.step);
        json_add_int(last, "steps", p.steps);
        if (p.has_loss && isfinite(p.loss))
            json_add_real(last, "loss", p.loss);
        else if (p.has_loss)
            json_add_null(last, "loss");
        if (p.s_per_it > 0)
            json_add_real(last, "s_per_it", p.s_per_it);
        json_add_int(last, "mem_bytes", p.mem_bytes);
    }
    CLEANUP(mem_free) char *text = json_to_string(now);
    return arena_strdup(a, text);
}
