/* SPDX-License-Identifier: Apache-2.0
 * cairn job add. */
#include "base/file.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/job_commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "job/command.h"
#include "job/environment.h"
#include "os/path.h"
#include "start/read_config.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct add_options {
    const char *gpu, *name, *note, *trainer, *resume_cmd, *root, *hang, *grace;
    struct opt_list set, env;
    int steps, retries;
    uint64_t hang_s, grace_s;
    bool draft, allow_cpu, json;
    const char *command; /* its name, for messages */
};

static int env_text(const struct add_options *o, struct arena *a, const char **out, struct cairn_error *err)
{
    const char *skipped;
    CLEANUP(json_cleanup) struct json *env = environment_take((const char *const *)environ, &skipped);
    if (skipped)
        messages_say(arena_printf(a, "the job does not get %.*s, whose value is not UTF-8",
                                  (int)strcspn(skipped, "="), skipped));
    for (size_t i = 0; i < o->env.n; i++) {
        const char *pair = o->env.item[i], *value = strchr(pair, '=');
        if (!value || !str_is_variable(pair, (size_t)(value - pair)))
            return cairn_fail(err, CAIRN_EUSAGE, "--env takes NAME=VALUE, not \"%s\"", pair);
        if (!str_is_utf8(value))
            return cairn_fail(err, CAIRN_EUSAGE, "--env %s: the value is not UTF-8", pair);
        json_add_text(env, arena_strndup(a, pair, (size_t)(value - pair)), value + 1);
    }
    CLEANUP(mem_free) char *text = json_to_string(env);
    *out = arena_strdup(a, text);
    return 0;
}

static const char *options_text(const struct add_options *o, const char *file, struct arena *a)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    if (file)
        json_add_text(v, "file", path_name(file));
    if (o->set.n) {
        struct json *set = json_add_array(v, "set");
        for (size_t i = 0; i < o->set.n; i++)
            json_add_text(set, NULL, o->set.item[i]);
    }
    if (o->steps >= 0)
        json_add_int(v, "steps", o->steps);
    if (o->retries >= 0)
        json_add_int(v, "retries", o->retries);
    if (o->hang)
        json_add_int(v, "hang_after_s", (int64_t)o->hang_s);
    if (o->grace)
        json_add_int(v, "grace_s", (int64_t)o->grace_s);
    if (o->trainer)
        json_add_text(v, "trainer", o->trainer);
    if (o->resume_cmd)
        json_add_text(v, "resume_cmd", o->resume_cmd);
    if (o->allow_cpu)
        json_add_bool(v, "allow_cpu", true);
    CLEANUP(mem_free) char *text = json_to_string(v);
    return arena_strdup(a, text);
}

/* What the training will say itself, in its log. */
static void say_nothing(void *context, const char *text)
{
    (void)context;
    (void)text;
}

int job_check_config(const struct config_changes *changes, const char *file, struct arena *a,
                     struct cairn_error *err)
{
    struct job_config c;
    struct config_changes plan = changes ? *changes : (struct config_changes){ .steps = -1 };
    static const struct message_sink silent = { .say = say_nothing, .commands = say_nothing };
    plan.only_plan = true;
    config_init(&c, a);
    if (start_read_config(&plan, file, &c, &silent, err))
        return -1;
    struct cairn_error lack = { 0 };
    if (!c.model.path[0] && start_check_weights(&c, &lack))
        messages_say(arena_printf(a, "%s; the job fails unless it is there when it starts", lack.msg));
    return 0;
}

static int read_file(const struct add_options *o, const char *file, struct arena *a, struct job_row *row,
                     struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    const char *name = path_name(file), *dot = strrchr(name, '.');
    const struct config_changes changes = { .set = o->set.item, .n_set = o->set.n, .steps = o->steps };
    if (file_read_settings(file, &text, &n, err) || (!o->draft && job_check_config(&changes, file, a, err)))
        return -1;
    row->kind = JOB_TRAIN;
    row->config = arena_strdup(a, text);
    row->name =
        o->name ? o->name : arena_strndup(a, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
    return 0;
}

static int make_row(struct job_session *s, const struct add_options *o, const char *file, char **argv,
                    struct job_row *row, struct cairn_error *err)
{
    char cwd[PATH_MAX];
    *row = (struct job_row){ .name = o->name, .kind = JOB_RUN, .gpu = o->gpu, .note = o->note };
    if (!getcwd(cwd, sizeof(cwd)))
        return cairn_fail_errno(err, "find the current folder");
    row->cwd = arena_strdup(&s->arena, cwd);
    row->options = options_text(o, file, &s->arena);
    return (file && read_file(o, file, &s->arena, row, err)) ||
                   (argv && job_command_text(argv, &s->arena, &row->argv, err)) ||
                   env_text(o, &s->arena, &row->env, err)
               ? -1
               : 0;
}

/* A job that could not be started is in the queue all the same. */
static int add(struct job_session *s, const struct add_options *o, const char *file, char **argv,
               struct cairn_error *err)
{
    struct job_row row, made;
    if (make_row(s, o, file, argv, &row, err) || queue_add(&s->queue, &row, !o->draft, &s->arena, &made, err))
        return -1;
    int r = queue_advance(&s->queue, err);
    job_print_done(s, made.uid, NULL, o->json);
    return r;
}

static int check_seconds(const struct add_options *o, const char *option, const char *text, uint64_t *out)
{
    enum { MOST = 30 * 24 * 3600 };
    if (!text || (cairn_parse_u64(text, out) && *out <= MOST))
        return OPTIONS_GO;
    return options_error(o->command, "%s takes seconds, not \"%s\"", option, text);
}

/* The words behind the first "--"; 0: there is none. */
static int words_behind(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--"))
            return argc - 1 - i;
    return 0;
}

static int check_words(const struct add_options *o, int n, int n_command)
{
    bool is_command = n_command > 0;
    if (is_command && n > n_command)
        return options_error(o->command, "takes a configuration or a command, not both");
    if (!n)
        return options_error(o->command, "needs a configuration, or a command after --");
    if (!is_command && n > 1)
        return options_error(o->command, "takes one configuration; a command comes after --");
    if (is_command && (o->set.n || o->steps >= 0))
        return options_error(o->command, "%s goes with a configuration", o->set.n ? "--set" : "--steps");
    if (!is_command && (o->trainer || o->resume_cmd || o->retries >= 0))
        return options_error(o->command, "%s goes with a command",
                             o->trainer      ? "--trainer"
                             : o->resume_cmd ? "--resume-cmd"
                                             : "--retries");
    return OPTIONS_GO;
}

int cmd_job_add(int argc, char **argv)
{
    struct add_options o = { .steps = -1, .retries = -1, .command = argv[0] };
    struct cairn_error err = { 0 };
    int rest;
    const struct opt_row rows[] = {
        OPT_STR('g', "gpu", &o.gpu, "N|auto|cpu", "run on this GPU, or on these (0,1); default auto"),
        OPT_STR('n', "name", &o.name, "TEXT", "name of the job (default: that of the file or the script)"),
        OPT_STR(0, "note", &o.note, "TEXT", "a note for yourself"),
        OPT_FLAG(0, "draft", &o.draft, "do not queue it yet"),
        OPT_LIST('s', "set", &o.set, "KEY=VALUE", "set a key of the configuration, overriding the file"),
        OPT_INT(0, "steps", &o.steps, "N", "train.steps"),
        OPT_LIST('e', "env", &o.env, "NAME=VALUE", "set a variable for the job; may be repeated"),
        OPT_STR('t', "trainer", &o.trainer, "NAME", "the trainer, if the command does not show it"),
        OPT_INT('r', "retries", &o.retries, "N", "retry at most N times, with one change each (default 2)"),
        OPT_STR(0, "hang-after", &o.hang, "SECONDS",
                "stop a trainer that hangs for this long (default 600; 0: never)"),
        OPT_STR(0, "grace", &o.grace, "SECONDS",
                "how long it may take to save when it is asked to stop (default 60; native training: 120)"),
        OPT_STR(0, "resume-cmd", &o.resume_cmd, "CMD", "shell command that resumes the training"),
        OPT_FLAG(0, "allow-cpu", &o.allow_cpu, "train on the CPU as a last resort"),
        OPT_STR(0, "root", &o.root, "DIR", "read the tree DIR instead of this machine's /"),
        OPT_FLAG('j', "json", &o.json, "print JSON on stdout"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn job add [options] CONFIG\n       cairn job add [options] -- COMMAND [arguments]",
        .about = "Adds a job to the queue and starts it if its GPU is free. CONFIG is a configuration of "
                 "`cairn train`, or a job file of ai-toolkit or musubi-tuner that it takes. COMMAND is any "
                 "trainer, which runs as under `cairn run`. The job runs in the current folder, with the "
                 "variables of this shell, and goes on when the terminal is closed.",
        .examples = "  cairn job add wan.yaml\n"
                    "  cairn job add --gpu 1 --name night -- python run.py config/my.yaml\n",
        .mixed = true,
    };
    int n_command = words_behind(argc, argv), r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    bool is_command = n_command > 0;
    r = check_words(&o, argc - rest, n_command);
    r = r != OPTIONS_GO ? r : check_seconds(&o, "--hang-after", o.hang, &o.hang_s);
    r = r != OPTIONS_GO ? r : check_seconds(&o, "--grace", o.grace, &o.grace_s);
    if (r == OPTIONS_GO) {
        struct job_session s;
        r = job_session_open(&s, o.root, &err) ||
                    add(&s, &o, is_command ? NULL : argv[rest], is_command ? argv + rest : NULL, &err)
                ? print_error(&err)
                : EXIT_FINE;
        job_session_close(&s);
    }
    opt_list_release(&o.set);
    opt_list_release(&o.env);
    return r;
}
