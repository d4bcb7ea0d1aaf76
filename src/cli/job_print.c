/* SPDX-License-Identifier: Apache-2.0
 * Jobs for people. */
#include "base/str.h"
#include "cli/job_commands.h"
#include "cli/print.h"
#include "job/adopt.h"
#include "job/command.h"
#include "job/job_dir.h"
#include "job/progress.h"
#include "report/jobs.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ID = 6, NAME_MOST = 28 };

static enum print_color color_of(enum job_state s)
{
    switch (s) {
    case JOB_FAILED:
    case JOB_LOST:
        return COLOR_RED;
    case JOB_STARTING:
    case JOB_ACTIVE:
        return COLOR_CYAN;
    case JOB_FINISHED:
        return COLOR_GREEN;
    case JOB_DRAFT:
        return COLOR_DIM;
    default:
        return COLOR_YELLOW;
    }
}

static void read_progress(const char *state, const struct job_row *row, struct job_progress *p)
{
    if (row->adopted)
        adopt_progress(row, p);
    else
        job_progress_read(state, row, p);
}

/* "2:05 h", "12 min", "40 s" */
static const char *duration(double s, char buf[24])
{
    long long minutes = (long long)(s / 60);
    if (s < 0 || !isfinite(s))
        snprintf(buf, 24, "-");
    else if (s < 60)
        snprintf(buf, 24, "%.0f s", s);
    else if (minutes < 60)
        snprintf(buf, 24, "%lld min", minutes);
    else
        snprintf(buf, 24, "%lld:%02lld h", minutes / 60, minutes % 60);
    return buf;
}

static const char *steps_text(const struct job_progress *p, char buf[48])
{
    if (p->step < 0)
        snprintf(buf, 48, "-");
    else if (p->steps < 0)
        snprintf(buf, 48, "%lld", (long long)p->step);
    else
        snprintf(buf, 48, "%lld/%lld", (long long)p->step, (long long)p->steps);
    return buf;
}

/* The remaining time of a running job, the age of another. */
static const char *time_text(const struct job_row *row, const struct job_progress *p, char buf[24])
{
    char text[24];
    int64_t at = row->finished ? row->finished : row->created;
    if (row->state == JOB_ACTIVE)
        snprintf(buf, 24, "%s%s", p->eta_s < 0 ? "" : "ETA ", p->eta_s < 0 ? "-" : duration(p->eta_s, text));
    else
        snprintf(buf, 24, "%s ago", duration((double)(time(NULL) - at), text));
    return buf;
}

static void print_row(const char *state, const struct job_row *row, int name_width)
{
    struct job_progress p;
    char steps[48], loss[24] = "-", when[24];
    read_progress(state, row, &p);
    if (p.has_loss)
        snprintf(loss, sizeof(loss), "%.4g", p.loss);
    printf("%-*s ", ID, row->uid + strlen(row->uid) - ID + 1);
    print_cell(stdout, row->name, name_width);
    printf(" %s%-8s%s %4s %13s %8s  %s", print_color(color_of(row->state)),
           row->want == JOB_WANT_NOTHING ? job_state_name(row->state) : "stopping", print_color(COLOR_PLAIN),
           row->gpu_used ? row->gpu_used : row->gpu, steps_text(&p, steps), loss, time_text(row, &p, when));
    putchar('\n');
    if (row->cause && row->state != JOB_FINISHED) {
        printf("%*s", ID + 1, "");
        print_wrapped(stdout, row->cause, ID + 1, print_width());
    }
}

void job_print_list(const char *state, const struct job_row *rows, size_t n, bool paused)
{
    int width = 4;
    if (paused)
        puts("The queue is paused; `cairn job queue go` lets it go on.");
    if (!n) {
        puts("no jobs yet; `cairn job add CONFIG.yaml` or `cairn job add -- COMMAND` adds one");
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int w = print_columns(rows[i].name);
        width = w < width ? width : w < NAME_MOST ? w : NAME_MOST;
    }
    printf("%s%-*s %-*s %-8s %4s %13s %8s  %s%s\n", print_color(COLOR_BOLD), ID, "ID", width, "NAME", "STATE",
           "GPU", "STEPS", "LOSS", "TIME", print_color(COLOR_PLAIN));
    for (size_t i = n; i-- > 0;) /* the newest last, above the prompt */
        print_row(state, &rows[i], width);
}

static void line(const char *key, const char *value)
{
    if (!value || !*value)
        return;
    printf("%-10s ", key);
    print_wrapped(stdout, value, 11, print_width());
}

static void time_line(const char *key, int64_t t)
{
    char text[32];
    struct tm tm;
    time_t at = (time_t)t;
    if (t && localtime_r(&at, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm))
        line(key, text);
}

void job_print_one(const char *state, const struct job_row *row)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_progress p;
    char steps[48], left[24];
    read_progress(state, row, &p);
    line("job", row->uid);
    line("name", row->name);
    line("kind", job_kind_name(row->kind));
    line("state",
         row->want == JOB_WANT_NOTHING
             ? job_state_name(row->state)
             : arena_printf(&a, "%s, asked to %s", job_state_name(row->state), job_want_name(row->want)));
    line("cause", row->cause);
    line("class", row->class_id);
    if (row->has_exit)
        line("exit", arena_printf(&a, "%lld", (long long)row->exit_code));
    if (p.step >= 0)
        line("steps", steps_text(&p, steps));
    if (p.has_loss)
        line("loss", arena_printf(&a, "%.6g", p.loss));
    if (p.s_per_it > 0)
        line("speed", arena_printf(&a, "%.3g s per step", p.s_per_it));
    if (row->state == JOB_ACTIVE && p.eta_s >= 0)
        line("ETA", duration(p.eta_s, left));
    line("gpu", row->gpu_used ? arena_printf(&a, "%s (asked for: %s)", row->gpu_used, row->gpu) : row->gpu);
    line("command", job_command_say(row, &a));
    line("folder", row->cwd);
    line("run", row->run_dir);
    if (!row->adopted)
        line("journal", row->attempt ? job_dir_attempt(state, row, &a) : job_dir_path(state, row->uid, &a));
    if (row->attempt > 1)
        line("attempts", arena_printf(&a, "%lld", (long long)row->attempt));
    line("parent", row->parent);
    line("note", row->note);
    time_line("created", row->created);
    time_line("started", row->started);
    time_line("finished", row->finished);
    if (row->class_id && !row->adopted)
        printf("\nto see the diagnosis: cairn diagnose %s/log\n", job_dir_attempt(state, row, &a));
}

void job_print_row(const struct job_session *s, const struct job_row *row, const char *what, bool json)
{
    if (json) {
        struct json *v = json_new_object();
        json_add_int(v, "schema", 1);
        report_job(s->state, row, true, json_add_object(v, "job"));
        print_report(v);
    } else if (!what && row->want != JOB_WANT_NOTHING)
        printf("%s %s: asked to %s\n", row->uid, row->name, job_want_name(row->want));
    else
        printf("%s %s: %s\n", row->uid, row->name, what ? what : job_state_name(row->state));
}

void job_print_done(struct job_session *s, const char *uid, const char *what, bool json)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error ignored;
    struct job_row row;
    if (!store_get(s->queue.store, uid, &a, &row, &ignored))
        job_print_row(s, &row, what, json);
}
