/* SPDX-License-Identifier: Apache-2.0
 * cairn job list, show, log. */
#include "base/str.h"
#include "cli/job_commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "job/adopt.h"
#include "job/job_dir.h"
#include "os/file.h"
#include "os/process.h"
#include "report/jobs.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_ROWS = 50, LOOK_MS = 250 };

struct list_options {
    const char *state, *text, *root;
    int limit;
    bool all, json;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct job_row *)b)->uid, ((const struct job_row *)a)->uid);
}

/* Jobs and runs from terminals in one list, the newest first. */
static int read_list(struct job_session *s, const struct list_options *o, unsigned states,
                     struct job_row **out, size_t *n, struct cairn_error *err)
{
    const struct store_query q = { .states = states, .text = o->text };
    struct job_row *runs;
    size_t n_runs;
    if (store_list(s->queue.store, &q, &s->arena, out, n, err) ||
        adopt_list(NULL, s->state, &s->arena, &runs, &n_runs, err))
        return -1;
    for (size_t i = 0; i < n_runs; i++)
        if ((!states || states & 1u << runs[i].state) && (!o->text || strcasestr(runs[i].name, o->text)))
            *ARENA_PUSH(&s->arena, *out, *n) = runs[i];
    if (*n)
        qsort(*out, *n, sizeof(**out), compare);
    return 0;
}

/* All that wait or run, and the newest of those that ended. */
static size_t shorten(struct job_row *rows, size_t n, size_t most_ended)
{
    size_t kept = 0, ended = 0;
    for (size_t i = 0; i < n; i++)
        if (!job_state_has_ended(rows[i].state) || ended++ < most_ended)
            rows[kept++] = rows[i];
    return kept;
}

static int parse_state(const char *name, unsigned *states, struct cairn_error *err)
{
    enum job_state state;
    *states = 0;
    if (name && !job_state_parse(name, &state)) {
        cairn_fail(err, CAIRN_EUSAGE, "there is no state \"%s\"", name);
        return cairn_hint(err, "the states are draft, queued, starting, active, finished, failed, stopped, "
                               "paused and lost");
    }
    if (name)
        *states = 1u << state;
    return 0;
}

static int list(struct job_session *s, const struct list_options *o, unsigned states, struct cairn_error *err)
{
    struct job_row *rows;
    size_t n;
    bool paused;
    if (queue_advance(&s->queue, err) || read_list(s, o, states, &rows, &n, err) ||
        queue_is_paused(&s->queue, &paused, err))
        return -1;
    size_t shown = shorten(rows, n, o->all ? n : o->limit > 0 ? (size_t)o->limit : DEFAULT_ROWS);
    if (o->json) {
        print_report(report_jobs(s->state, rows, shown, shown < n, paused));
        return 0;
    }
    job_print_list(s->state, rows, shown, paused);
    if (shown < n)
        printf("\n%zu of %zu jobs; --all lists every one.\n", shown, n);
    return 0;
}

int cmd_job_list(int argc, char **argv)
{
    struct list_options o = { 0 };
    struct cairn_error err = { 0 };
    struct job_session s;
    unsigned states;
    const struct opt_row rows[] = {
        OPT_STR('s', "state", &o.state, "STATE", "only jobs in this state"),
        OPT_STR('q', "find", &o.text, "TEXT", "only jobs with this in their name, note or command"),
        OPT_INT('n', "limit", &o.limit, "N", "of the jobs that ended, only the newest N (default 50)"),
        OPT_FLAG(0, "all", &o.all, "list every job"),
        OPT_JOB_ROOT(&o.root),
        OPT_FLAG('j', "json", &o.json, "print JSON on stdout"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn job list [options]",
        .about = "Lists the jobs, the newest last, and the runs of `cairn train` and `cairn run` that were "
                 "started in a terminal. It also sets right the state of jobs whose supervisor died, and "
                 "starts what can start.",
    };
    int r = options_parse(argc, argv, rows, &usage, NULL);
    if (r != OPTIONS_GO)
        return r;
    if (parse_state(o.state, &states, &err))
        return print_error(&err);
    r = job_session_open(&s, o.root, &err) || list(&s, &o, states, &err) ? print_error(&err) : EXIT_FINE;
    job_session_close(&s);
    return r;
}

int cmd_job_show(int argc, char **argv)
{
    bool json = false;
    struct cairn_error err = { 0 };
    struct job_session s;
    struct job_row row;
    int rest;
    const struct opt_row rows[] = { OPT_FLAG('j', "json", &json, "print JSON on stdout"), OPT_END };
    static const struct opt_usage usage = {
        .synopsis = "cairn job show [options] JOB",
        .about = "Prints all about a job: state, progress, command, folders, and why it failed.",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc - rest != 1)
        return options_error(argv[0], "needs one job");
    r = job_session_open(&s, NULL, &err) || job_session_find(&s, argv[rest], &row, &err) ? print_error(&err)
                                                                                         : EXIT_FINE;
    if (r == EXIT_FINE && json)
        job_print_row(&s, &row, NULL, true);
    else if (r == EXIT_FINE)
        job_print_one(s.state, &row);
    job_session_close(&s);
    return r;
}

/* ---- log ---- */

/* Prints from *at on; returns whether there was anything. */
static bool print_from(int fd, uint64_t *at)
{
    char bytes[64 << 10];
    ssize_t n;
    bool any = false;
    while ((n = os_read_at(fd, bytes, sizeof(bytes), *at)) > 0) {
        fwrite(bytes, 1, (size_t)n, stdout);
        *at += (uint64_t)n;
        any = true;
    }
    fflush(stdout);
    return any;
}

struct followed {
    struct job_session *s;
    struct job_row row;
    struct os_process_id run; /* of a terminal */
};

/* It may still write. */
static bool is_alive(const struct followed *f)
{
    return f->row.adopted ? f->run.pid > 0 && !os_signal(&f->run, 0)
                          : job_dir_is_held(f->s->state, f->row.uid);
}

/* Waits for its turn. */
static bool will_begin(struct followed *f)
{
    struct cairn_error ignored;
    return !f->row.adopted && !queue_heal(&f->s->queue, &ignored) &&
           !store_get(f->s->queue.store, f->row.uid, &f->s->arena, &f->row, &ignored) &&
           (f->row.state == JOB_QUEUED || job_state_is_running(f->row.state));
}

/* Of its last attempt: one that was stopped before it began has none. */
static const char *log_path(const struct followed *f)
{
    struct job_row row = f->row;
    if (row.adopted)
        return arena_printf(&f->s->arena, "%s/%s", row.run_dir, row.kind == JOB_TRAIN ? "log.jsonl" : "log");
    row.attempt = job_dir_last_attempt(f->s->state, row.uid);
    return arena_printf(&f->s->arena, "%s/log", job_dir_attempt(f->s->state, &row, &f->s->arena));
}

/* -1: there is none.  With `waits`, until the job has begun. */
static int open_log(struct followed *f, bool waits, struct cairn_error *err)
{
    const char *path = log_path(f);
    int fd = os_open(path, OS_READ);
    for (; fd < 0 && waits && errno == ENOENT && will_begin(f); fd = os_open(path, OS_READ)) {
        poll(NULL, 0, LOOK_MS);
        path = log_path(f);
    }
    if (fd >= 0)
        return fd;
    if (errno == ENOENT && !f->row.adopted && !job_dir_last_attempt(f->s->state, f->row.uid)) {
        cairn_fail(err, CAIRN_EUSAGE, "job %s has not begun: it has no log yet", f->row.uid);
        return cairn_hint(err, "--follow waits for it");
    }
    cairn_fail_errno(err, "open %s", path);
    return f->row.adopted ? -1
                          : cairn_hint(err, "what its supervisor said is in %s/supervisor.log",
                                       job_dir_path(f->s->state, f->row.uid, &f->s->arena));
}

/* Until the job has ended and everything is printed. */
static void follow(const struct followed *f, int fd)
{
    uint64_t at = 0;
    for (;;) {
        bool alive = is_alive(f), any = print_from(fd, &at);
        if ((!alive && !any) || ferror(stdout))
            return;
        poll(NULL, 0, any ? 0 : LOOK_MS);
    }
}

static int print_log(struct job_session *s, const char *word, bool goes_on, struct cairn_error *err)
{
    struct followed f = { .s = s };
    uint64_t at = 0;
    if (job_session_find(s, word, &f.row, err))
        return -1;
    if (f.row.adopted && f.row.state == JOB_ACTIVE)
        (void)!os_process_id((pid_t)f.row.pid, &f.run);
    CLEANUP(fd_close) int fd = open_log(&f, goes_on, err);
    if (fd < 0)
        return -1;
    if (goes_on)
        follow(&f, fd);
    else
        print_from(fd, &at);
    return 0;
}

int cmd_job_log(int argc, char **argv)
{
    bool goes_on = false;
    struct cairn_error err = { 0 };
    struct job_session s;
    int rest;
    const struct opt_row rows[] = { OPT_FLAG('f', "follow", &goes_on, "go on while the job runs"), OPT_END };
    static const struct opt_usage usage = {
        .synopsis = "cairn job log [options] JOB",
        .about = "Prints the output of a job's last attempt; of native training from a terminal, the "
                 "steps in its log.jsonl. With --follow it goes on until the job ends, and waits for one "
                 "that has not begun.",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc - rest != 1)
        return options_error(argv[0], "needs one job");
    r = job_session_open(&s, NULL, &err) || print_log(&s, argv[rest], goes_on, &err) ? print_error(&err)
                                                                                     : EXIT_FINE;
    job_session_close(&s);
    return r;
}
