/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/machine.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/run_history.h"
#include "os/file.h"
#include "os/terminal.h"
#include "report/gpu.h"
#include "run/run_job.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEFAULT_HANG_S = 600, DEFAULT_RETRIES = 2 };

struct run_options {
    struct machine_options machine;
    struct run_job_options job;
    struct opt_list keep, with;
    const char *preload_text, *hang, *log;
    bool history, json, all;
};

static struct json *describe_machine(const struct facts *f)
{
    return report_gpus(f, NULL);
}

/* Exit codes such as 1 are reserved for the trainer. */
static int own_error(const struct cairn_error *err)
{
    int code = print_error(err);
    return code == EXIT_TROUBLE ? RUN_CODE_OURS : code;
}

static int run_here(struct run_options *o, int parent)
{
    CLEANUP(facts_release) struct facts f;
    struct cairn_error err = { 0 };
    int code;
    o->machine.command = (const char *const *)o->job.argv;
    o->job.gfx = o->machine.gfx;
    o->job.keep = o->keep.item;
    o->job.with = o->with.item;
    o->job.parent = parent;
    o->job.messages = &stderr_messages;
    o->job.describe_machine = describe_machine;
    if (machine_read(&o->machine, &f, &err) || run_job(&o->job, &f, &code, &err))
        return own_error(&err);
    return code;
}

/* The parent returns when the run has started, or with its exit code if it failed before. */
static int run_detached(struct run_options *o)
{
    int fds[2], status = 0;
    struct cairn_error err = { 0 };
    if (pipe2(fds, O_CLOEXEC)) {
        cairn_fail_errno(&err, "pipe");
        return print_error(&err), RUN_CODE_OURS;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        cairn_fail_errno(&err, "fork");
        return print_error(&err), RUN_CODE_OURS;
    }
    if (pid == 0) {
        close(fds[0]);
        setsid();
        return run_here(o, fds[1]);
    }
    close(fds[1]);
    char started;
    if (read(fds[0], &started, 1) == 1)
        return EXIT_FINE;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : RUN_CODE_OURS;
}

/* Reports a file that cannot be written before the command starts.  Opening a pipe would end its reader. */
static int check_file(const char *option, const char *path)
{
    struct cairn_error err = { 0 };
    struct stat st;
    if (!stat(path, &st) && S_ISFIFO(st.st_mode))
        return OPTIONS_GO;
    int fd = os_open(path, OS_APPEND | OS_CREATE | OS_PRIVATE | OS_NO_WAIT);
    if (fd < 0) {
        cairn_fail_errno(&err, "open %s", path);
        cairn_hint(&err, "%s needs a writable file", option);
        print_error(&err);
        return EXIT_USAGE;
    }
    close(fd);
    return OPTIONS_GO;
}

static int check_words(struct run_options *o, const char *command)
{
    uint64_t seconds;
    if (o->json && !o->history)
        return options_error(command, "--json goes with --history; --json-events FILE logs a run as JSON");
    if (o->all && !o->history)
        return options_error(command, "--all goes with --history");
    if ((o->history || o->log) && o->job.argv[0])
        return options_error(command, "%s takes no command", o->log ? "--log" : "--history");
    if (o->history && o->log)
        return options_error(command, "--history and --log do not go together");
    if (o->history || o->log)
        return OPTIONS_GO;
    if (!o->job.argv[0] || !*o->job.argv[0])
        return options_error(command, "needs a command: cairn run [options] -- COMMAND [arguments]");
    if (o->hang && (!cairn_parse_u64(o->hang, &seconds) || seconds > 30 * 24 * 3600))
        return options_error(command, "--hang-after takes seconds, not \"%s\"", o->hang);
    o->job.hang_after_s = o->hang ? (int)seconds : DEFAULT_HANG_S;
    o->job.hang_explicit = o->hang != NULL;
    struct cairn_error err = { 0 };
    if (preload_parse(o->preload_text, &o->job.preload, &err))
        return options_error(command, "%s", err.msg);
    if (o->job.no_env && (o->job.gpu >= 0 || o->job.debug))
        return options_error(command, "%s does not go with --no-env, which changes no variables",
                             o->job.debug ? "--debug" : "--gpu");
    if (o->job.no_env && !o->preload_text)
        o->job.preload.way = PRELOAD_OFF;
    if (o->job.json_events && check_file("--json-events", o->job.json_events) != OPTIONS_GO)
        return EXIT_USAGE;
    return o->job.keep_log ? check_file("--keep-log", o->job.keep_log) : OPTIONS_GO;
}

static int run_command(struct run_options *o, int argc, char **argv)
{
    const struct opt_row rows[] = {
        OPT_INT('g', "gpu", &o->job.gpu, "N", "train on GPU N only, and hide the others"),
        OPT_STR('t', "trainer", &o->job.trainer, "NAME", "the trainer, if the command does not show it"),
        OPT_INT('r', "retries", &o->job.retries, "N",
                "retry at most N times, with one change each (default 2)"),
        OPT_STR(0, "hang-after", &o->hang, "SECONDS",
                "stop a trainer that hangs for this long (default 600; 0: never)"),
        OPT_STR(0, "resume-cmd", &o->job.resume_cmd, "CMD",
                "shell command that resumes the training, for retries after the first step"),
        OPT_FLAG(0, "allow-cpu", &o->job.allow_cpu, "train on the CPU as a last resort"),
        OPT_FLAG('d', "debug", &o->job.debug,
                 "add variables that help to find an error; training becomes slow"),
        OPT_FLAG(0, "no-env", &o->job.no_env, "do not change the environment"),
        OPT_LIST(0, "keep", &o->keep, "NAME", "keep this variable even if it does harm; may be repeated"),
        OPT_LIST(0, "with", &o->with, "NAME=VALUE", "add this variable; may be repeated"),
        OPT_FLAG(0, "strict", &o->job.strict, "do not start if the doctor finds a failure (exit status 3)"),
        OPT_FLAG(0, "no-preflight", &o->job.no_preflight, "do not run the doctor first"),
        OPT_FLAG(0, "check-outputs", &o->job.check_outputs,
                 "check every safetensors file that the trainer wrote, not only latent caches"),
        OPT_FLAG(0, "with-smi", &o->job.with_smi,
                 "give the trainer an nvidia-smi that reports the AMD GPUs (see `cairn smi`)"),
        OPT_FLAG(0, "detach", &o->job.detach,
                 "run in the background; the trainer outlives the terminal and cairn itself"),
        OPT_STR(0, "keep-log", &o->job.keep_log, "FILE", "also append the trainer's output to FILE"),
        OPT_STR(0, "json-events", &o->job.json_events, "FILE",
                "also write the journal's events to FILE, one JSON object per line"),
        OPT_FLAG('q', "quiet", &o->job.quiet, "print nothing of cairn's own unless something fails"),
        OPT_FLAG(0, "history", &o->history, "list the newest 20 runs, the last one first"),
        OPT_FLAG(0, "all", &o->all, "with --history: list every run"),
        OPT_STR(0, "log", &o->log, "RUN", "print the log of a run: last, '#2' or the name of its folder"),
        OPT_FLAG('j', "json", &o->json, "with --history: print JSON on stdout"),
        OPT_STR(0, "preload", &o->preload_text, "auto|off|all|record|stage|retry|memory|guard",
                "what the preload library does, separated by commas; +WORD adds to auto"),
        OPT_STR(0, "gfx", &o->machine.gfx, "NAME", "gfx target to assume, such as gfx1151"),
        OPT_MACHINE(&o->machine),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn run [options] [--] COMMAND [arguments]",
        .about = "Starts a trainer with the environment that this machine needs, logs its output, watches "
                 "it, and diagnoses a failure. It retries, one change at a time, if no work can be lost. "
                 "Exit status: that of the trainer, or 128 plus the signal that ended it; 127 if "
                 "there is no such command, 126 if it cannot be executed, 124 if it hung and cairn ended "
                 "it.",
        .examples = "  cairn run -- python train.py --config my.yaml\n"
                    "  cairn run --retries 0 --hang-after 1800 -- accelerate launch train_network.py\n",
    };
    int rest, r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    o->job.argv = argv + rest;
    o->job.options = argv + 1;
    o->job.n_options = (size_t)(rest - 1 - (rest > 1 && !strcmp(argv[rest - 1], "--")));
    r = check_words(o, argv[0]);
    if (r != OPTIONS_GO)
        return r;
    if (o->history)
        return run_history(o->all, o->json);
    if (o->log)
        return run_log(o->log);
    os_null_standard();
    return o->job.detach ? run_detached(o) : run_here(o, -1);
}

int cmd_run(int argc, char **argv)
{
    struct run_options o = { .job = { .gpu = -1, .retries = DEFAULT_RETRIES } };
    int code = run_command(&o, argc, argv);
    opt_list_release(&o.keep);
    opt_list_release(&o.with);
    return code;
}
