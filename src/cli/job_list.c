/* SPDX-License-Identifier: Apache-2.0
 * cairn job list, show, log. */
#include "base/str.h"
#include "cli/job_commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "job/adopt.h"
#include "job/job_dir.h"
#include "os/file.h"
#include "report/jobs.h"
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
        adopt_list(s->state, &s->arena, &runs, &n_runs, err))
        return -1;
    for (size_t i = 0; i < n_runs; i++)
        if ((!states || states & 1u << runs[i].state) && (!o->text || strcasestr(runs[i].name, o->text)))
            *ARENA_PUSH(&s->arena, *out, *n) = runs[i];
    if (*n)
        qsort(*out, *n, sizeof(**out), compare);
    return 0;
}

static int list(struct job_session *s, const struct list_options *o, struct cairn_error *err)
{
    unsigned states = 0;
    struct job_row *rows;
    size_t n;
    bool paused;
    enum job_state state;
    if (o->state && !job_state_parse(o->state, &state)) {
        cairn_fail(err, CAIRN_EUSAGE, "there is no state \"%s\"", o->state);
        return cairn_hint(err, "the states are draft, queued, starting, active, finished, failed, stopped, "
                               "paused and lost");
    }
    if (o->state)
        states = 1u << state;
    if (queue_advance(&s->queue, err) || read_list(s, o, states, &rows, &n, err) ||
        queue_is_paused(&s->queue, &paused, err))
        return -1;
    size_t most = o->all ? n : o->limit > 0 ? (size_t)o->limit : DEFAULT_ROWS, shown = n < most ? n : most;
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
    const struct opt_row rows[] = {
        OPT_STR('s', "state", &o.state, "STATE", "only jobs in this state"),
        OPT_STR('q', "find", &o.text, "TEXT", "only jobs with this in their name, note or command"),
        OPT_INT('n', "limit", &o.limit, "N", "the newest N (default 50)"),
        OPT_FLAG(0, "all", &o.all, "list every job"),
        OPT_STR(0, "root", &o.root, "DIR", "read the tree DIR instead of this machine's /"),
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
    r = job_session_open(&s, o.root, &err) || list(&s, &o, &err) ? print_error(&err) : EXIT_FINE;
    job_session_close(&s);
    return r;
}

static int find(struct job_session *s, const char *word, struct job_row *out, struct cairn_error *err)
{
    if (!store_find(s->queue.store, word, &s->arena, out, err))
        return 0;
    return adopt_find(s->state, word, &s->arena, out) ? 0 : -1;
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
    if (job_session_open(&s, NULL, &err) || find(&s, argv[rest], &row, &err))
        r = print_error(&err);
    else {
        r = EXIT_FINE;
        if (json) {
            struct json *v = json_new_object();
            json_add_int(v, "schema", 1);
            report_job(s.state, &row, true, json_add_object(v, "job"));
            print_report(v);
        } else
            job_print_one(s.state, &row);
    }
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

/* Until the job has ended and everything is printed. */
static void follow(const struct job_session *s, const struct job_row *row, int fd)
{
    uint64_t at = 0;
    for (;;) {
        bool alive = row->adopted ? false : job_dir_is_held(s->state, row->uid);
        bool any = print_from(fd, &at);
        if ((!alive && !any) || ferror(stdout))
            return;
        poll(NULL, 0, any ? 0 : LOOK_MS);
    }
}

static int print_log(struct job_session *s, const char *word, bool goes_on, struct cairn_error *err)
{
    struct job_row row;
    if (find(s, word, &row, err))
        return -1;
    const char *dir = row.adopted ? row.run_dir : job_dir_attempt(s->state, &row, &s->arena);
    const char *path =
        arena_printf(&s->arena, "%s/%s", dir, row.adopted && row.kind == JOB_TRAIN ? "log.jsonl" : "log");
    CLEANUP(fd_close) int fd = os_open(path, OS_READ);
    if (fd < 0 && !row.attempt)
        return cairn_fail(err, CAIRN_EUSAGE, "job %s has not begun: it has no log yet", row.uid);
    if (fd < 0) {
        cairn_fail_errno(err, "open %s", path);
        return cairn_hint(err, "what its supervisor said is in %s/supervisor.log",
                          job_dir_path(s->state, row.uid, &s->arena));
    }
    uint64_t at = 0;
    if (goes_on)
        follow(s, &row, fd);
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
        .about = "Prints the output of a job's last attempt.",
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
