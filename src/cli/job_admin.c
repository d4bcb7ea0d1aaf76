/* SPDX-License-Identifier: Apache-2.0
 * cairn job edit, move, queue, rebuild, and the supervisor. */
#include "base/file.h"
#include "base/str.h"
#include "cli/job_commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "job/exec.h"
#include "job/rebuild.h"
#include "report/gpu.h"
#include "run/state_dir.h"
#include <stdio.h>
#include <string.h>

extern char **environ;

/* The text of another configuration, which is checked unless the job is a draft. */
static int read_config(const struct job_row *row, const char *file, struct arena *a, struct store_edit *e,
                       struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    if (row->kind == JOB_RUN) {
        cairn_fail(err, CAIRN_EUSAGE, "job %s runs a command, and has no configuration", row->uid);
        return cairn_hint(err, "`cairn job add -- COMMAND` adds one with another command");
    }
    if (file_read_settings(file, &text, &n, err) ||
        (row->state != JOB_DRAFT && job_check_config(NULL, file, a, err)))
        return -1;
    e->config = arena_strdup(a, text);
    return 0;
}

int cmd_job_edit(int argc, char **argv)
{
    struct store_edit e = { 0 };
    const char *file = NULL, *root = NULL;
    bool json = false, conflict;
    struct cairn_error err = { 0 };
    struct job_session s;
    struct job_row row;
    int rest, version = 0;
    const struct opt_row rows[] = {
        OPT_STR('n', "name", &e.name, "TEXT", "another name"),
        OPT_STR(0, "note", &e.note, "TEXT", "another note"),
        OPT_STR('g', "gpu", &e.gpu, "N|auto|cpu", "another GPU"),
        OPT_STR('c', "config", &file, "FILE", "the text of FILE as its configuration"),
        OPT_INT(0, "version", &version, "N", "only if it still has the version that `show --json` printed"),
        OPT_JOB_ROOT(&root),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn job edit [options] JOB",
        .about = "Changes a job that does not run. `cairn job show --json JOB` prints its configuration. A "
                 "training that goes on from a checkpoint uses the changed configuration from there on.",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc - rest != 1)
        return options_error(argv[0], "needs one job");
    if (!e.name && !e.note && !e.gpu && !file)
        return options_error(argv[0], "needs --name, --note, --gpu or --config");
    r = job_session_open(&s, root, &err) || store_find(s.queue.store, argv[rest], &s.arena, &row, &err) ||
                (file && read_config(&row, file, &s.arena, &e, &err)) ||
                queue_edit(&s.queue, row.uid, version, &e, &conflict, &err) || queue_advance(&s.queue, &err)
            ? print_error(&err)
            : EXIT_FINE;
    if (r == EXIT_FINE)
        job_print_done(&s, row.uid, "changed", json);
    job_session_close(&s);
    return r;
}

/* Before the first job of the queue. */
static int move_first(struct job_session *s, const char *uid, struct cairn_error *err)
{
    struct job_row *rows;
    size_t n;
    if (store_queue(s->queue.store, &s->arena, &rows, &n, err))
        return -1;
    return store_move(s->queue.store, uid, n ? rows[0].uid : NULL, err);
}

int cmd_job_move(int argc, char **argv)
{
    const char *before = NULL, *root = NULL;
    bool first = false, json = false;
    struct cairn_error err = { 0 };
    struct job_session s;
    struct job_row row, other = { 0 };
    int rest;
    const struct opt_row rows[] = {
        OPT_FLAG(0, "first", &first, "to the front of the queue"),
        OPT_STR('b', "before", &before, "JOB", "before this job"),
        OPT_JOB_ROOT(&root),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn job move [options] JOB",
        .about = "Changes the place of a job in the queue; without an option it becomes the last.",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc - rest != 1)
        return options_error(argv[0], "needs one job");
    if (first && before)
        return options_error(argv[0], "takes --first or --before, not both");
    r = job_session_open(&s, root, &err) || store_find(s.queue.store, argv[rest], &s.arena, &row, &err) ||
                (before && store_find(s.queue.store, before, &s.arena, &other, &err)) ||
                (first ? move_first(&s, row.uid, &err)
                       : store_move(s.queue.store, row.uid, other.uid, &err)) ||
                queue_advance(&s.queue, &err)
            ? print_error(&err)
            : EXIT_FINE;
    if (r == EXIT_FINE)
        job_print_done(&s, row.uid, "moved", json);
    job_session_close(&s);
    return r;
}

struct queue_words {
    const char *word; /* pause, go; NULL: neither */
    const char *wait; /* on, off; NULL: neither */
};

static int set_queue(struct job_session *s, const struct queue_words *w, bool *paused, bool *waits,
                     struct cairn_error *err)
{
    if ((w->word && queue_set_paused(&s->queue, !strcmp(w->word, "pause"), err)) ||
        (w->wait && queue_set_wait(&s->queue, !strcmp(w->wait, "on"), err)))
        return -1;
    return queue_advance(&s->queue, err) || queue_is_paused(&s->queue, paused, err) ||
                   queue_waits(&s->queue, waits, err)
               ? -1
               : 0;
}

int cmd_job_queue(int argc, char **argv)
{
    const char *root = NULL;
    struct queue_words w = { 0 };
    bool json = false, paused = false, waits = true;
    struct cairn_error err = { 0 };
    struct job_session s;
    int rest;
    const struct opt_row rows[] = {
        OPT_STR(0, "wait-idle", &w.wait, "on|off",
                "whether a job waits until no other program uses its GPU (default on)"),
        OPT_JOB_ROOT(&root),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn job queue [options] [pause|go]",
        .about = "Pauses the queue: jobs that run go on, no further one starts. `go` lets it go on. Without "
                 "a word it says which of both it is.",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    w.word = rest < argc ? argv[rest] : NULL;
    if (argc - rest > 1 || (w.word && strcmp(w.word, "pause") && strcmp(w.word, "go")))
        return options_error(argv[0], "takes pause or go");
    if (w.wait && strcmp(w.wait, "on") && strcmp(w.wait, "off"))
        return options_error(argv[0], "--wait-idle takes on or off, not \"%s\"", w.wait);
    r = job_session_open(&s, root, &err) || set_queue(&s, &w, &paused, &waits, &err) ? print_error(&err)
                                                                                     : EXIT_FINE;
    if (r == EXIT_FINE && json) {
        struct json *v = json_new_object();
        json_add_int(v, "schema", 1);
        json_add_bool(v, "paused", paused);
        json_add_bool(v, "wait_idle", waits);
        print_report(v);
    } else if (r == EXIT_FINE)
        printf("the queue %s; jobs %s for other programs that use their GPU\n",
               paused ? "is paused" : "goes on", waits ? "wait" : "do not wait");
    job_session_close(&s);
    return r;
}

static void print_rebuilt(const struct rebuild_result *r, bool json)
{
    if (json) {
        struct json *v = json_new_object();
        json_add_int(v, "schema", 1);
        json_add_int(v, "added", (int64_t)r->n_jobs);
        json_add_int(v, "skipped", (int64_t)r->n_skipped);
        json_add_text(v, "old", r->old);
        print_report(v);
        return;
    }
    if (r->old)
        printf("the damaged database is now %s\n", r->old);
    printf("%zu %s added\n", r->n_jobs, r->n_jobs == 1 ? "job" : "jobs");
}

int cmd_job_rebuild(int argc, char **argv)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct rebuild_result result;
    const char *state;
    bool json = false;
    const struct opt_row rows[] = { OPT_FLAG('j', "json", &json, "print JSON on stdout"), OPT_END };
    static const struct opt_usage usage = {
        .synopsis = "cairn job rebuild [options]",
        .about = "Adds jobs that have a folder but are not in the list. If the database of jobs is damaged, "
                 "it gets another name and a new one is made from the folders: jobs that waited become "
                 "drafts, jobs that run go on.",
    };
    int r = options_parse(argc, argv, rows, &usage, NULL);
    if (r != OPTIONS_GO)
        return r;
    if (state_dir((const char *const *)environ, &a, &state, &err) || rebuild(state, &a, &result, &err))
        return print_error(&err);
    for (size_t i = 0; i < result.n_skipped; i++)
        messages_say(result.skipped[i]);
    print_rebuilt(&result, json);
    return EXIT_FINE;
}

static struct json *describe_machine(const struct facts *f)
{
    return report_gpus(f, NULL);
}

/* cairn job exec UID */
int cmd_job_run_supervisor(int argc, char **argv)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct job_exec_options o = { .messages = &stderr_messages, .describe_machine = describe_machine };
    int rest;
    const struct opt_row rows[] = {
        OPT_STR(0, "root", &o.root, "DIR", "read the tree DIR instead of this machine's /"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn job exec UID",
        .about = "The supervisor of a job that was claimed; the queue starts it.",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc - rest != 1)
        return options_error(argv[0], "needs one job");
    o.uid = argv[rest];
    if (!job_uid_is_valid(o.uid))
        return options_error(argv[0], "\"%s\" is not the ID of a job", o.uid);
    if (state_dir((const char *const *)environ, &a, &o.state, &err) || job_exec(&o, &err))
        return print_error(&err);
    return EXIT_FINE;
}
