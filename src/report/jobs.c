/* SPDX-License-Identifier: Apache-2.0 */
#include "report/jobs.h"

#include "base/clock.h"
#include "job/adopt.h"
#include "job/command.h"
#include "job/environment.h"
#include "job/job_dir.h"
#include "job/progress.h"
#include <math.h>
#include <string.h>
#include <time.h>

/* Unknown is null. */
static void add_number(struct json *o, const char *key, double v, bool known)
{
    if (known && isfinite(v))
        json_add_real(o, key, v);
    else
        json_add_null(o, key);
}

static void add_count(struct json *o, const char *key, int64_t v, bool known)
{
    if (known)
        json_add_int(o, key, v);
    else
        json_add_null(o, key);
}

static void add_json(struct json *o, const char *key, const char *text)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored;
    if (text && !json_parse(text, strlen(text), &v, &ignored))
        json_add_copy(o, key, v);
    else
        json_add_null(o, key);
}

/* What people should not see in a bug report is left out. */
static void add_environment(struct json *o, const char *text)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored;
    struct json *out = json_add_object(o, "env");
    if (text && json_parse(text, strlen(text), &v, &ignored))
        return;
    for (struct json_member m = json_first(v); m.key; m = json_next(v, m))
        if (environment_is_secret(m.key))
            json_add_text(out, m.key, "(hidden)");
        else
            json_add_copy(out, m.key, m.value);
}

static void add_progress(struct json *o, const char *state, const struct job_row *row)
{
    struct job_progress p;
    if (row->adopted)
        adopt_progress(row, &p);
    else
        job_progress_read(state, row, &p);
    add_count(o, "step", p.step, p.step >= 0);
    add_count(o, "steps", p.steps, p.steps >= 0);
    add_number(o, "loss", p.loss, p.has_loss);
    add_number(o, "s_per_it", p.s_per_it, p.s_per_it > 0);
    add_number(o, "eta_s", p.eta_s, p.eta_s >= 0 && row->state == JOB_ACTIVE);
    add_count(o, "mem_bytes", p.mem_bytes, p.mem_bytes >= 0);
}

/* Only a job that runs, or that left a process, can have a lock that somebody holds. */
static bool is_alive(const char *state, const struct job_row *row)
{
    if (row->adopted)
        return row->state == JOB_ACTIVE;
    return (job_state_is_running(row->state) || row->pid) && job_dir_is_held(state, row->uid);
}

/* Seconds until a trainer that was asked to stop is ended; null if it was not asked. */
static void add_stopping(struct json *o, const struct job_row *row)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_command c;
    struct cairn_error ignored;
    if (row->state != JOB_ACTIVE || (row->want != JOB_WANT_STOP && row->want != JOB_WANT_PAUSE)) {
        json_add_null(o, "stopping_s");
        return;
    }
    int grace = job_command_parse(row, &a, &c, &ignored) ? job_kind_grace_s(row->kind) : c.grace_s;
    int64_t left = row->since_ms / 1000 + grace - (int64_t)time(NULL);
    json_add_int(o, "stopping_s", left > 0 ? left : 0);
}

struct json *report_job(const char *state, const struct job_row *row, bool full, struct json *into)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct json *o = into ? into : json_new_object();
    json_add_text(o, "uid", row->uid);
    json_add_text(o, "name", row->name);
    json_add_text(o, "kind", job_kind_name(row->kind));
    json_add_text(o, "gpu", row->gpu);
    json_add_text(o, "gpu_used", row->gpu_used);
    json_add_text(o, "state", job_state_name(row->state));
    json_add_bool(o, "alive", is_alive(state, row));
    json_add_bool(o, "adopted", row->adopted);
    json_add_bool(o, "resumable", queue_is_resumable(row));
    json_add_text(o, "want", job_want_name(row->want));
    add_stopping(o, row);
    add_progress(o, state, row);
    json_add_text(o, "command", job_command_say(row, &a));
    json_add_text(o, "class", row->class_id);
    json_add_text(o, "cause", row->cause);
    add_count(o, "exit_code", row->exit_code, row->has_exit);
    json_add_int(o, "attempt", row->attempt);
    add_count(o, "pid", row->pid, row->pid > 0);
    add_number(o, "position", row->position, row->state == JOB_QUEUED || row->state == JOB_PAUSED);
    json_add_text(o, "run_dir", row->run_dir);
    json_add_text(o, "parent", row->parent);
    json_add_text(o, "note", row->note);
    json_add_int(o, "created", row->created);
    add_count(o, "started", row->started, row->started > 0);
    add_count(o, "finished", row->finished, row->finished > 0);
    json_add_int(o, "version", row->version);
    if (!full)
        return o;
    json_add_text(o, "cwd", row->cwd);
    json_add_text(o, "config", row->config);
    add_json(o, "argv", row->argv);
    add_environment(o, row->env);
    add_json(o, "options", row->options);
    json_add_text(o, "folder", row->adopted ? row->run_dir : job_dir_path(state, row->uid, &a));
    return o;
}

struct json *report_jobs(const char *state, const struct job_row *rows, size_t n, bool more, bool paused)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    struct json *list = json_add_array(top, "jobs");
    for (size_t i = 0; i < n; i++)
        report_job(state, &rows[i], false, json_add_object(list, NULL));
    report_jobs_end(top, more && n ? rows[n - 1].uid : NULL, paused);
    return top;
}

void report_jobs_end(struct json *top, const char *next, bool paused)
{
    json_add_text(top, "next", next);
    struct json *queue = json_add_object(top, "queue");
    json_add_bool(queue, "paused", paused);
    json_add_text(queue, "reason", paused ? "paused by the user" : NULL);
}
