/* SPDX-License-Identifier: Apache-2.0
 * cairn job start, stop, pause, resume, kill, abandon, clone, rm: one job or several, by name. */
#include "base/str.h"
#include "cli/job_commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "job/adopt.h"
#include "job/environment.h"
#include "job/job_dir.h"
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { LOOK_MS = 50, END_MS = 8000 };

/* What one of these commands does. */
struct action {
    int (*act)(struct queue *q, const char *uid, struct cairn_error *err);
    const char *what; /* printed after it; NULL: the state of the job */
    const char *synopsis, *about;
    bool waits; /* until no process is left */
    bool stops; /* also a run that was started in a terminal */
    bool copies, removes;
};

static int remove_alone(struct queue *q, const char *uid, struct cairn_error *err)
{
    return queue_remove(q, uid, false, err);
}

static int remove_with_run(struct queue *q, const char *uid, struct cairn_error *err)
{
    return queue_remove(q, uid, true, err);
}

/* The guardian needs a moment; then the row is set right. */
static int wait_for_end(struct job_session *s, const char *uid, struct cairn_error *err)
{
    for (int waited = 0; job_dir_is_held(s->state, uid) && waited < END_MS; waited += LOOK_MS)
        poll(NULL, 0, LOOK_MS);
    return queue_heal(&s->queue, err);
}

/* A run from a terminal becomes a job, with the variables of this shell. */
static int take_run(struct job_session *s, const struct job_row *row, bool goes_on, bool json,
                    struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *env = environment_take((const char *const *)environ, NULL);
    CLEANUP(mem_free) char *text = json_to_string(env);
    struct job_row made;
    if (queue_adopt(&s->queue, row, goes_on, text, &s->arena, &made, err) ||
        (goes_on && queue_advance(&s->queue, err)))
        return -1;
    if (goes_on)
        job_print_done(s, made.uid, NULL, json);
    else
        job_print_row(s, &made, "a draft, which `cairn job start` queues", json);
    return 0;
}

static int act_on_run(struct job_session *s, const struct job_row *row, const struct action *x, bool json,
                      struct cairn_error *err)
{
    if (x->copies || x->act == queue_resume)
        return take_run(s, row, !x->copies, json, err);
    if (!x->stops) {
        cairn_fail(err, CAIRN_EUSAGE, "%s was started in a terminal, not by `cairn job`", row->name);
        return cairn_hint(err, "it can be shown and stopped; `cairn job resume` goes on with it as a job");
    }
    if (adopt_stop(row, err))
        return -1;
    job_print_row(s, row, row->state == JOB_ACTIVE ? "asked to stop" : NULL, json);
    return 0;
}

static void print_removed(const struct job_session *s, const struct job_row *row, bool json)
{
    if (!json) {
        printf("%s %s: removed; its folder is in %s/jobs/.cairn-trash\n", row->uid, row->name, s->state);
        return;
    }
    struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    json_add_text(v, "removed", row->uid);
    print_report(v);
}

static int act(struct job_session *s, const struct action *x, const char *word, bool json,
               struct cairn_error *err)
{
    struct job_row row, made;
    if (job_session_find(s, word, &row, err))
        return -1;
    if (row.adopted)
        return act_on_run(s, &row, x, json, err);
    if (x->copies) {
        if (queue_clone(&s->queue, row.uid, &s->arena, &made, err))
            return -1;
        job_print_row(s, &made, "a draft, which `cairn job start` queues", json);
        return 0;
    }
    if (x->act(&s->queue, row.uid, err) || (x->waits && wait_for_end(s, row.uid, err)) ||
        queue_advance(&s->queue, err))
        return -1;
    if (x->removes)
        print_removed(s, &row, json);
    else
        job_print_done(s, row.uid, x->what, json);
    return 0;
}

static int run_action(const struct action *x, int argc, char **argv)
{
    bool json = false, files = false;
    const char *root = NULL;
    struct cairn_error err = { 0 };
    struct job_session s;
    struct action with_run = *x;
    int rest;
    const struct opt_row all[] = { OPT_FLAG(0, "files", &files, "its run, too: checkpoints, samples, log"),
                                   OPT_JOB_ROOT(&root), OPT_FLAG('j', "json", &json, "print JSON on stdout"),
                                   OPT_END };
    const struct opt_row *rows = x->removes ? all : all + 1;
    const struct opt_usage usage = { .synopsis = x->synopsis, .about = x->about, .mixed = true };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc == rest)
        return options_error(argv[0], "needs a job; `cairn job list` lists them");
    if (files) {
        with_run.act = remove_with_run;
        x = &with_run;
    }
    r = job_session_open(&s, root, &err) ? print_error(&err) : EXIT_FINE;
    for (int i = rest, opened = r == EXIT_FINE; i < argc && opened; i++)
        if (act(&s, x, argv[i], json, &err)) {
            int code = print_error(&err);
            r = r ? r : code;
            err = (struct cairn_error){ 0 };
        }
    job_session_close(&s);
    return r;
}

int cmd_job_start(int argc, char **argv)
{
    static const struct action x = {
        .act = queue_start,
        .synopsis = "cairn job start [options] JOB...",
        .about = "Puts a draft, or a job that ended, into the queue. Native training goes on from its "
                 "newest checkpoint, if it has one.",
    };
    return run_action(&x, argc, argv);
}

int cmd_job_stop(int argc, char **argv)
{
    static const struct action x = {
        .act = queue_stop,
        .stops = true,
        .synopsis = "cairn job stop [options] JOB...",
        .about = "Asks a job to save and end: its trainer gets SIGINT, as from Ctrl-C, and after 60 seconds "
                 "(native training: 120; `cairn job add --grace` sets it) SIGTERM and SIGKILL. A job that "
                 "waits leaves the queue. `cairn job resume` goes on with it. Also stops a run that was "
                 "started in a terminal.",
    };
    return run_action(&x, argc, argv);
}

int cmd_job_pause(int argc, char **argv)
{
    static const struct action x = {
        .act = queue_pause,
        .synopsis = "cairn job pause [options] JOB...",
        .about = "Stops a job as `cairn job stop` does, and keeps its place in the queue. Only for jobs that "
                 "can go on where they stopped: native training, and trainers that cairn knows.",
    };
    return run_action(&x, argc, argv);
}

int cmd_job_resume(int argc, char **argv)
{
    static const struct action x = {
        .act = queue_resume,
        .synopsis = "cairn job resume [options] JOB...",
        .about =
            "Goes on with a job where it stopped, failed or was lost. A run of `cairn train` or `cairn run` "
            "that was started in a terminal, and has ended, becomes a job.",
    };
    return run_action(&x, argc, argv);
}

int cmd_job_kill(int argc, char **argv)
{
    static const struct action x = {
        .act = queue_kill,
        .waits = true,
        .synopsis = "cairn job kill [options] JOB...",
        .about = "Ends all processes of a job at once. What was not saved is lost.",
    };
    return run_action(&x, argc, argv);
}

int cmd_job_abandon(int argc, char **argv)
{
    static const struct action x = {
        .act = queue_abandon,
        .synopsis = "cairn job abandon [options] JOB...",
        .about = "Gives up on a job that was asked to stop and whose processes do not end, such as one in "
                 "state D that waits for a driver. The GPU stays taken until they are gone.",
    };
    return run_action(&x, argc, argv);
}

int cmd_job_clone(int argc, char **argv)
{
    static const struct action x = {
        .copies = true,
        .synopsis = "cairn job clone [options] JOB...",
        .about = "Copies a job, or a run that was started in a terminal, as a draft, to edit and start.",
    };
    return run_action(&x, argc, argv);
}

int cmd_job_rm(int argc, char **argv)
{
    static const struct action x = {
        .act = remove_alone,
        .removes = true,
        .synopsis = "cairn job rm [options] JOB...",
        .about = "Removes jobs that do not run from the list. Their folders, with logs and journals, go to "
                 "jobs/.cairn-trash in the state folder. The folders of their runs, with checkpoints and "
                 "samples, stay where they are, or go to .cairn-trash beside them with --files.",
    };
    return run_action(&x, argc, argv);
}
