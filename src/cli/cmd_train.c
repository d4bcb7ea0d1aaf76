/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/str.h"
#include "os/terminal.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/pages.h"
#include "cli/print.h"
#include "cli/restart.h"
#include "cli/self_env.h"
#include "cli/step_evidence.h"
#include "cli/train_list.h"
#include "cli/train_setup.h"
#include "cli/watch_calls.h"
#include "config.h"
#include "host/root.h"
#include "train/train.h"
#include "os/file.h"
#include "os/list.h"
#include "os/path.h"
#include "os/stop.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct train_args {
    const char *resume, *json_events, *profile, *example;
    struct train_wish wish;
    int hang_after_s;
    bool dry_run, debug, list, json;
    int argc; /* as they were given, from "train" on */
    char **argv;
};

/* ---- signals: the first stops after the step and saves, the second ends at once ---- */

static volatile sig_atomic_t stop_signal;
static bool on_terminal; /* the line with the step has no end yet */

static void on_signal(int sig)
{
    if (stop_signal)
        _exit(128 + sig);
    stop_signal = sig;
    static const char words[] = "\ncairn: stopping after this step and saving; once more ends at once\n";
    ssize_t n = write(STDERR_FILENO, words + !on_terminal, sizeof(words) - 1 - !on_terminal);
    (void)n;
}

static bool is_stopped(void)
{
    return stop_signal != 0;
}

static void catch_signals(void)
{
    on_terminal = tty_obeys(stderr);
    os_stop_catch(on_signal, true);
    os_ignore_file_limit();
    os_ignore_closed_pipe();
}

/* ---- the folder of the run ---- */

static bool is_empty(const char *dir)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    return !l || !os_list_next(l);
}

/* runs/NAME, where NAME is run.name or the file's. */
static const char *run_dir(const struct job_config *c, struct arena *a, const char *file)
{
    const char *name = path_name(file), *dot = strrchr(name, '.');
    if (c->run.dir[0])
        return c->run.dir;
    if (c->run.name[0])
        return arena_printf(a, "runs/%s", c->run.name);
    return arena_printf(a, "runs/%.*s", (int)(dot ? dot - name : (long)strlen(name)), name);
}

static int open_dir(const struct train_args *args, const char *dir, struct cairn_error *err)
{
    if (args->profile) /* nothing is left in it */
        return 0;
    if (args->resume && args->resume[0] && access(dir, F_OK))
        return cairn_fail_errno(err, "--resume=%s", dir);
    if (!args->resume && !is_empty(dir)) {
        cairn_fail(err, CAIRN_EUSAGE, "%s is not empty", dir);
        return cairn_hint(err, "--resume goes on with that run; --set run.dir=DIR starts one elsewhere");
    }
    if (args->dry_run || !file_make_dir(dir, 0777, err))
        return 0;
    return cairn_hint(err, "--set run.dir=DIR puts the run elsewhere");
}

/* ---- the command ---- */

/* A run that lost its GPU does not go on without one unasked. */
static int check_gpu_is_there(const struct gpu *g, bool allow_cpu, struct cairn_error *err)
{
    if (!restart_why() || gpu_info(g)->api != GPU_API_HOST || restart_wants_cpu() || allow_cpu)
        return 0;
    cairn_fail(err, CAIRN_ELACK, "the GPU that the run was on cannot be opened any more");
    return cairn_hint(
        err, "--resume when `cairn gpu` shows it without problems; train.allow_cpu goes on with the CPU");
}

static int open_device(const struct job_config *c, struct train_options *o, struct arena *a,
                       struct cairn_error *err)
{
    restart_know(GPU_API_HIP, c->train.allow_cpu); /* until it is open */
    if (train_open_device(c, a, o, err) || check_gpu_is_there(o->g, c->train.allow_cpu, err))
        return -1;
    restart_know(gpu_info(o->g)->api, c->train.allow_cpu);
    if (restart_wants_cpu())
        o->why_device = "the GPU failed again and again";
    return 0;
}

static int exit_of(enum train_end end)
{
    return end == TRAIN_STOPPED ? 128 + stop_signal : EXIT_FINE;
}

/* A call that never comes back, told by the thread that watches: nothing can be closed. */
static void start_again_stuck(const struct cairn_error *why)
{
    if (!is_stopped())
        restart_now(why, false);
}

static void evidence(const struct gpu_info *g, struct str *brief, struct str *full)
{
    step_evidence(NULL, g->pci, brief, full);
}

/* What another process could not finish, this one may have to do in another way. */
static int prepare_restart(const struct train_args *args, struct train_options *o, struct arena *a,
                           struct cairn_error *err)
{
    if (args->profile || args->dry_run)
        return 0;
    restart_prepare(args->argc, args->argv, args->resume, o->dir, a);
    restart_apply();
    o->workaround = restart_workaround();
    o->restarted = restart_why();
    return restart_wants_cpu() ? config_set(o->config, "the workaround", "train.device", "cpu", err) : 0;
}

/* Where no workaround helps, one new start is enough. */
static bool once_is_enough(const struct gpu *g, enum train_end end)
{
    return !g || end == TRAIN_TORN;
}

/* Whether a new process may. */
static bool may_do_better(const struct gpu *g, enum train_end end, const struct cairn_error *err)
{
    if (is_stopped())
        return false;
    if (once_is_enough(g, end))
        return !restart_why() && (end == TRAIN_TORN || err->code == CAIRN_EDEVICE);
    return err->code == CAIRN_EDEVICE || gpu_lost(g);
}

/* A stream of its own for "-", too: it is closed, and its errors are told, as those of a file. */
static FILE *open_events(const char *name, struct cairn_error *err)
{
    bool standard = str_eq(name, "-");
    int fd = standard ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    FILE *f = standard ? fdopen(fd, "w") : os_stream(name, OS_APPEND | OS_CREATE);
    if (f)
        return f;
    cairn_fail_errno(err, "open %s", standard ? "standard output" : name);
    fd_close(&fd);
    return NULL;
}

static int train(const struct train_args *args, const char *file, struct arena *a)
{
    struct cairn_error err = { 0 };
    struct job_config config;
    struct train_options o = {
        .config = &config,
        .resume = args->resume != NULL,
        .dry_run = args->dry_run,
        .debug = args->debug,
        .profile = args->profile,
        .version = CAIRN_VERSION,
        .talk = args->dry_run ? stdout : stderr, /* what would be done is the answer then */
        .is_stopped = is_stopped,
        .stop = &stop_signal,
        .evidence = evidence,
    };
    enum train_end end = TRAIN_FINISHED;
    config_init(&config, a);
    if (train_read_config(&args->wish, file, &config, &err))
        return print_error(&err);
    o.dir = args->resume && args->resume[0] ? args->resume : run_dir(&config, a, file);
    if (open_dir(args, o.dir, &err))
        return print_error(&err);
    if (args->json_events && !args->dry_run && !(o.events = open_events(args->json_events, &err)))
        return print_error(&err);
    self_env_apply();
    catch_signals();
    int r = prepare_restart(args, &o, a, &err) || watch_calls(args->hang_after_s, start_again_stuck, &err) ||
                    open_device(&config, &o, a, &err) || train_run(&o, &end, &err)
                ? -1
                : 0;
    bool again = r && may_do_better(o.g, end, &err), once = once_is_enough(o.g, end);
    gpu_close(o.g);
    if (o.events)
        fclose(o.events);
    if (again)
        restart_now(&err, once);
    return r ? print_error(&err) : exit_of(end);
}

static int print_example(const char *name)
{
    const char *text = page_find("example", name);
    if (text)
        return fputs(text, stdout), EXIT_FINE;
    char *names = page_names("example");
    int r = options_error("train", "there is no example \"%s\"; there are %s", name, names);
    free(names);
    return r;
}

static bool is_run(struct arena *a, const char *dir)
{
    struct stat st;
    return !stat(dir, &st) && S_ISDIR(st.st_mode) && !access(path_join(a, dir, "config.yaml"), R_OK);
}

/* The file to read; a run that goes on has its own.  "--resume RUN" is meant as "--resume=RUN".  NULL: it is told what is
 * wrong. */
static const char *configuration(struct train_args *args, int n, char **names, struct arena *a)
{
    const char *file = n ? names[0] : NULL;
    for (int i = 0; i < n && args->resume && !args->resume[0]; i++)
        if (is_run(a, names[i])) {
            args->resume = names[i];
            file = n-- == 2 ? names[!i] : NULL; /* argv stays as it is, for a new start */
        }
    if (n == 1)
        return file;
    if (!n && args->resume && args->resume[0] && is_run(a, args->resume))
        return path_join(a, args->resume, "config.yaml");
    if (!n && args->resume && args->resume[0])
        options_error("train", "--resume=%s: there is no config.yaml in it; which configuration?",
                      args->resume);
    else if (!n)
        options_error("train", args->resume
                                   ? "which run? --resume=RUN takes its configuration from RUN/config.yaml"
                                   : "which configuration?");
    else
        options_error("train", "one configuration at a time%s",
                      args->resume && !args->resume[0] ? "; a folder to resume is written --resume=DIR" : "");
    return NULL;
}

int cmd_train(int argc, char **argv)
{
    struct train_args args = {
        .wish.steps = -1, .hang_after_s = WATCH_DEFAULT_S, .argc = argc, .argv = argv
    };
    struct arena arena = { 0 };
    int rest;
    const struct opt_row rows[] = {
        OPT_LIST('s', "set", &args.wish.set, "KEY=VALUE", "a key of the configuration, over the file's"),
        OPT_ATTACHED(
            'r', "resume", &args.resume, "DIR",
            "go on from the newest whole checkpoint (of the run in DIR, which has its configuration)"),
        OPT_STR('d', "device", &args.wish.device, "NAME", "auto, cpu, hip:0, cuda:0 (default: train.device)"),
        OPT_INT('n', "steps", &args.wish.steps, "N", "train.steps"),
        OPT_FLAG(0, "dry-run", &args.dry_run, "say what would be done, and what it takes; train nothing"),
        OPT_FLAG(0, "debug", &args.debug, "kernels check their indices and numbers; slow"),
        OPT_STR(0, "profile", &args.profile, "FILE",
                "time every op of a few steps; a trace for Perfetto into FILE"),
        OPT_STR(0, "json-events", &args.json_events, "FILE|-",
                "append a line of JSON for each step to FILE, or to standard output"),
        OPT_STR(0, "example", &args.example, "NAME", "print a configuration to start from, such as gpt-tiny"),
        OPT_FLAG('l', "list", &args.list, "list the runs (in DIR, if one is given)"),
        OPT_FLAG('j', "json", &args.json, "with --list: print JSON on stdout"),
        WATCH_OPTION(&args.hang_after_s),
        OPT_END
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn train [options] CONFIG.yaml\n       cairn train --resume=RUN [options]",
        .about =
            "Trains a model as the configuration says (docs/config.md, or cairn help config), on the best device there is. "
            "The run's folder gets checkpoints, the log, samples and a plot. Ctrl-C saves and stops; --resume goes on with "
            "the same bits. Exit status: 0 finished, 1 failed, 2 the configuration is wrong, 3 no such device, 130 stopped "
            "by Ctrl-C (143: by SIGTERM).",
        .examples = "  cairn train --example gpt-tiny > tiny.yaml\n"
                    "  cairn train tiny.yaml --set data.path=book.txt\n"
                    "  cairn train --resume=runs/tiny --steps 500\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (args.json && !args.list)
        r = options_error("train", "--json goes with --list; --json-events FILE tells of a run");
    else if (args.example)
        r = print_example(args.example);
    else if (args.list)
        r = argc - rest > 1 ? options_error("train", "--list takes one folder at most")
                            : train_list(argc > rest ? argv[rest] : NULL, args.json);
    else {
        const char *file = configuration(&args, argc - rest, argv + rest, &arena);
        r = file ? train(&args, file, &arena) : EXIT_USAGE;
    }
    opt_list_release(&args.wish.set);
    arena_release(&arena);
    return r;
}
