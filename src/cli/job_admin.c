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

enum { CONFIG_MOST = 8 << 20 };

int cmd_job_edit(int argc, char **argv)
{
    struct store_edit e = { 0 };
    const char *file = NULL;
    bool json = false, conflict;
    struct cairn_error err = { 0 };
    CLEANUP(mem_free) char *text = NULL;
    struct job_session s;
    struct job_row row;
    size_t n;
    int rest;
    const struct opt_row rows[] = {
        OPT_STR('n', "name", &e.name, "TEXT", "another name"),
        OPT_STR(0, "note", &e.note, "TEXT", "another note"),
        OPT_STR('g', "gpu", &e.gpu, "N|auto|cpu", "another GPU"),
        OPT_STR('c', "config", &file, "FILE", "the text of FILE as its configuration"),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn job edit [options] JOB",
        .about = "Changes a job that does not run. `cairn job show --json JOB` prints its configuration.",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc - rest != 1)
        return options_error(argv[0], "needs one job");
    if (!e.name && !e.note && !e.gpu && !file)
        return options_error(argv[0], "needs --name, --note, --gpu or --config");
    if (file && file_read_whole(file, CONFIG_MOST, &text, &n, &err))
        return print_error(&err);
    e.config = text;
    r = job_session_open(&s, NULL, &err) || store_find(s.queue.store, argv[rest], &s.arena, &row, &err) ||
                queue_edit(&s.queue, row.uid, 0, &e, &conflict, &err)
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
    return n ? store_move(s->queue.store, uid, rows[0].uid, err) : 0;
}

int cmd_job_move(int argc, char **argv)
{
    const char *before = NULL;
    bool first = false, json = false;
    struct cairn_error err = { 0 };
    struct job_session s;
    struct job_row row, other = { 0 };
    int rest;
    const struct opt_row rows[] = {
        OPT_FLAG(0, "first", &first, "to the front of the queue"),
        OPT_STR('b', "before", &before, "JOB", "before this job"),
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
    r = job_session_open(&s, NULL, &err) || store_find(s.queue.store, argv[rest], &s.arena, &row, &err) ||
                (before && store_find(s.queue.store, before, &s.arena, &other, &err)) ||
                (first ? move_first(&s, row.uid, &err) : store_move(s.queue.store, row.uid, other.uid, &err))
            ? print_error(&err)
            : EXIT_FINE;
    if (r == EXIT_FINE)
        job_print_done(&s, row.uid, "moved", json);
    job_session_close(&s);
    return r;
}

int cmd_job_queue(int argc, char **argv)
{
    bool json = false;
    struct cairn_error err = { 0 };
    struct job_session s;
    bool paused = false;
    int rest;
    const struct opt_row rows[] = { OPT_FLAG('j', "json", &json, "print JSON on stdout"), OPT_END };
    static const struct opt_usage usage = {
        .synopsis = "cairn job queue [options] [pause|go]",
        .about = "Pauses the queue: jobs that run go on, no further one starts. `go` lets it go on. Without "
                 "a word it says which of both it is.",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    const char *word = rest < argc ? argv[rest] : NULL;
    if (argc - rest > 1 || (word && strcmp(word, "pause") && strcmp(word, "go")))
        return options_error(argv[0], "takes pause or go");
    r = job_session_open(&s, NULL, &err) ||
                (word && queue_set_paused(&s.queue, !strcmp(word, "pause"), &err)) ||
                queue_advance(&s.queue, &err) || queue_is_paused(&s.queue, &paused, &err)
            ? print_error(&err)
            : EXIT_FINE;
    if (r == EXIT_FINE && json) {
        struct json *v = json_new_object();
        json_add_int(v, "schema", 1);
        json_add_bool(v, "paused", paused);
        print_report(v);
    } else if (r == EXIT_FINE)
        puts(paused ? "the queue is paused" : "the queue goes on");
    job_session_close(&s);
    return r;
}

int cmd_job_rebuild(int argc, char **argv)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct rebuild_result result;
    const char *state;
    static const struct opt_row rows[] = { OPT_END };
    static const struct opt_usage usage = {
        .synopsis = "cairn job rebuild",
        .about = "Makes the database of jobs anew from the folders of the jobs. The old one stays beside it "
                 "under another name. Jobs that waited become drafts; jobs that run go on.",
    };
    int r = options_parse(argc, argv, rows, &usage, NULL);
    if (r != OPTIONS_GO)
        return r;
    if (state_dir((const char *const *)environ, &a, &state, &err) || rebuild(state, &a, &result, &err))
        return print_error(&err);
    for (size_t i = 0; i < result.n_skipped; i++)
        messages_say(result.skipped[i]);
    if (result.old)
        printf("the old database is now %s\n", result.old);
    printf("%zu jobs\n", result.n_jobs);
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
    if (state_dir((const char *const *)environ, &a, &o.state, &err) || job_exec(&o, &err))
        return print_error(&err);
    return EXIT_FINE;
}
