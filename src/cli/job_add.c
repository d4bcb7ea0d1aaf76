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
#include "os/path.h"
#include "start/read_config.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG_MOST = 8 << 20 };

struct add_options {
    const char *gpu, *name, *note, *trainer, *resume_cmd, *root, *hang;
    struct opt_list set, env;
    int steps, retries;
    bool draft, allow_cpu, json;
    const char *command; /* its name, for messages */
};

/* The job runs in this shell's folder, with this shell's variables that make a difference to a trainer. */
static const char *const kept_variables[] = {
    "PATH",
    "HOME",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HSA_OVERRIDE_GFX_VERSION",
    "ROCM_PATH",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "XDG_CACHE_HOME",
    "TMPDIR",
};

static int env_text(const struct add_options *o, struct arena *a, const char **out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *env = json_new_object();
    for (size_t i = 0; i < ARRAY_LEN(kept_variables); i++)
        if (getenv(kept_variables[i]))
            json_add_text(env, kept_variables[i], getenv(kept_variables[i]));
    for (size_t i = 0; i < o->env.n; i++) {
        const char *pair = o->env.item[i], *value = strchr(pair, '=');
        if (!value || !str_is_variable(pair, (size_t)(value - pair)))
            return cairn_fail(err, CAIRN_EUSAGE, "--env takes NAME=VALUE, not \"%s\"", pair);
        json_add_text(env, arena_strndup(a, pair, (size_t)(value - pair)), value + 1);
    }
    CLEANUP(mem_free) char *text = json_to_string(env);
    *out = arena_strdup(a, text);
    return 0;
}

static const char *options_text(const struct add_options *o, const char *file, uint64_t hang, struct arena *a)
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
        json_add_int(v, "hang_after_s", (int64_t)hang);
    if (o->trainer)
        json_add_text(v, "trainer", o->trainer);
    if (o->resume_cmd)
        json_add_text(v, "resume_cmd", o->resume_cmd);
    if (o->allow_cpu)
        json_add_bool(v, "allow_cpu", true);
    CLEANUP(mem_free) char *text = json_to_string(v);
    return arena_strdup(a, text);
}

/* "auto", "cpu", "0", "0,1"; each number a GPU that exists. */
static int check_gpu(const char *gpu, const struct facts *f, struct cairn_error *err)
{
    if (str_eq(gpu, "auto") || str_eq(gpu, "cpu"))
        return 0;
    for (const char *at = gpu; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[16];
        uint64_t index;
        bool found = false;
        snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ","), at);
        if (!cairn_parse_u64(word, &index))
            return cairn_fail(err, CAIRN_EUSAGE,
                              "--gpu takes auto, cpu or numbers such as 0 or 0,1, not \"%s\"", gpu);
        for (size_t i = 0; i < f->n_gpus; i++)
            found |= f->gpus[i].hip_index >= 0 && (uint64_t)f->gpus[i].hip_index == index;
        if (!found) {
            cairn_fail(err, CAIRN_ELACK, "this machine has no GPU %s that can train", word);
            return cairn_hint(err, "`cairn gpu` lists the GPUs; --gpu cpu trains on the CPU");
        }
    }
    return 0;
}

/* A mistake in the configuration shows now, not when the job starts at night. */
static int check_config(const struct add_options *o, const char *file, struct arena *a,
                        struct cairn_error *err)
{
    struct job_config c;
    const struct config_changes changes = {
        .set = o->set.item, .n_set = o->set.n, .steps = o->steps, .only_plan = true
    };
    static const struct message_sink silent = { 0 };
    config_init(&c, a);
    return start_read_config(&changes, file, &c, &silent, err);
}

static int read_file(const struct add_options *o, const char *file, struct arena *a, struct job_row *row,
                     struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    size_t n;
    const char *name = path_name(file), *dot = strrchr(name, '.');
    if (file_read_whole(file, CONFIG_MOST, &text, &n, err) || (!o->draft && check_config(o, file, a, err)))
        return -1;
    row->kind = JOB_TRAIN;
    row->config = arena_strdup(a, text);
    row->name =
        o->name ? o->name : arena_strndup(a, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
    return 0;
}

static int add(struct job_session *s, const struct add_options *o, const char *file, char **argv,
               struct cairn_error *err)
{
    char cwd[PATH_MAX];
    uint64_t hang = 0;
    struct job_row row = {
        .name = o->name, .kind = JOB_RUN, .gpu = o->gpu ? o->gpu : "auto", .note = o->note
    };
    struct job_row made;
    if (o->hang && (!cairn_parse_u64(o->hang, &hang) || hang > 30 * 24 * 3600))
        return cairn_fail(err, CAIRN_EUSAGE, "--hang-after takes seconds, not \"%s\"", o->hang);
    if (!getcwd(cwd, sizeof(cwd)))
        return cairn_fail_errno(err, "find the current folder");
    if (check_gpu(row.gpu, &s->facts, err) || (file && read_file(o, file, &s->arena, &row, err)) ||
        env_text(o, &s->arena, &row.env, err))
        return -1;
    row.cwd = cwd;
    row.options = options_text(o, file, hang, &s->arena);
    if (argv)
        row.argv = job_command_text(argv, &s->arena);
    if (queue_add(&s->queue, &row, !o->draft, &s->arena, &made, err) || queue_advance(&s->queue, err))
        return -1;
    job_print_done(s, made.uid, NULL, o->json);
    return 0;
}

static int check_words(const struct add_options *o, int n, bool is_command)
{
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
                 "variables of this shell that concern trainers, and goes on when the terminal is closed.",
        .examples = "  cairn job add wan.yaml\n"
                    "  cairn job add --gpu 1 --name night -- python run.py config/my.yaml\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    bool is_command = rest > 1 && !strcmp(argv[rest - 1], "--");
    r = check_words(&o, argc - rest, is_command);
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
