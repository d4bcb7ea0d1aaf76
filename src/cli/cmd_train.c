/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/pages.h"
#include "cli/print.h"
#include "cli/train_list.h"
#include "dist/comm.h"
#include "host/root.h"
#include "os/file.h"
#include "os/stop.h"
#include "os/terminal.h"
#include "start/launch_ranks.h"
#include "start/ranks.h"
#include "start/train.h"
#include "start/watch_calls.h"
#include "os/info.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_MOST = 1024 };

struct train_args {
    struct start_options start;
    struct opt_list set; /* --set */
    const char *example;
    int64_t ranks; /* 0: not given */
    bool list, json;
    bool musubi; /* the arguments are a command of musubi-tuner */
};

/* ---- signals: the first one saves and stops after the step, the second one quits at once ---- */

static volatile sig_atomic_t stop_signal;
static bool on_terminal; /* the progress line has no newline yet */
static bool is_silent;   /* another rank speaks */

static void on_signal(int sig)
{
    if (stop_signal)
        _exit(128 + sig);
    stop_signal = sig;
    static const char words[] =
        "\ncairn: will save and stop after this step; press Ctrl-C again to quit now\n";
    ssize_t n = is_silent ? 0 : write(STDERR_FILENO, words + !on_terminal, sizeof(words) - 1 - !on_terminal);
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

static int exit_of(enum train_end end)
{
    if (end != TRAIN_STOPPED)
        return EXIT_FINE;
    return 128 + (stop_signal ? stop_signal : SIGINT); /* or control.json asked for it */
}

/* ---- several ranks: the first one speaks ---- */

static void say_nothing(void *context, const char *text)
{
    (void)context, (void)text;
}

/* An error that the first rank may not hear of. */
static void say_error(void *context, const struct cairn_error *err)
{
    const struct comm *c = context;
    fprintf(stderr, "[rank %d %s] %s\n", comm_rank(c), comm_host(c, comm_rank(c)), err->msg);
}

/* The process that started the ranks asks for it. */
static void raise_stop(void)
{
    kill(getpid(), SIGINT);
}

static int end_ranks(struct comm *c, int exit_code)
{
    comm_close(c, exit_code);
    return exit_code;
}

/* What every rank prints of its own failure is printed by the first, which has heard of it. */
static int fail_ranks(struct comm *c, const struct cairn_error *err)
{
    bool first = !comm_rank(c);
    comm_fail(c, err);
    comm_await_end(c);
    if (!first)
        say_error(c, err); /* rank 0 has not ended this process: it may not speak either */
    return end_ranks(c, first ? print_error(err) : (int)exit_code_of(err));
}

/* Else each process would train the whole job, in one folder. */
static int check_launched(const struct train_args *args, const struct comm *c, struct cairn_error *err)
{
    if (start_is_launched() && comm_size(c) != args->ranks)
        return cairn_fail(err, CAIRN_EUSAGE,
                          "--ranks %d: mpirun started this process in a way that is not known here",
                          (int)args->ranks);
    if (c && args->start.fit)
        return cairn_fail(err, CAIRN_EUSAGE,
                          "--fit chooses for one process alone: put what `cairn train --fit --dry-run` "
                          "prints into the configuration");
    return 0;
}

static int train(struct train_args *args, struct arena *a)
{
    struct start_options *o = &args->start;
    struct cairn_error err = { 0 };
    struct start start;
    enum train_end end;
    if (start_join_ranks(&o->comm, &err) || check_launched(args, o->comm, &err))
        return fail_ranks(o->comm, &err);
    const struct message_sink quiet = { say_nothing, say_nothing, say_error, o->comm };
    bool first = !comm_rank(o->comm);
    is_silent = !first;
    o->changes.set = args->set.item;
    o->changes.n_set = args->set.n;
    o->talk = !first       ? os_stream("/dev/null", OS_WRITE)
              : o->dry_run ? stdout
                           : stderr; /* the plan is the result of a dry run */
    o->messages = first ? &stderr_messages : &quiet;
    o->is_stopped = is_stopped;
    o->stop = &stop_signal;
    if (start_prepare(&start, o, a, &err) ||
        (first && start_is_launched() && start_watch_launcher(raise_stop, &err)))
        return fail_ranks(o->comm, &err);
    catch_signals();
    return start_run(&start, &end, &err) ? fail_ranks(o->comm, &err) : end_ranks(o->comm, exit_of(end));
}

/* ---- --ranks: this process starts them ---- */

static volatile sig_atomic_t n_signals;

static void count_signal(int sig)
{
    (void)sig;
    n_signals++;
}

static int signals_so_far(void)
{
    return n_signals;
}

static int launch(const struct train_args *args)
{
    struct cairn_error err = { 0 };
    struct world w;
    int exit_code;
    if (world_find(&w, &err))
        return print_error(&err);
    if (w.size > 1)
        return options_error("train", "--ranks: %s has started %d ranks already", launcher_name(w.launcher),
                             w.size);
    const struct launch_ranks l = { .ranks = (int)args->ranks,
                                    .argc = args->start.argc,
                                    .argv = args->start.argv,
                                    .signals = signals_so_far };
    os_stop_catch(count_signal, false);
    os_ignore_closed_pipe();
    return start_launch_ranks(&l, &exit_code, &err) ? print_error(&err) : exit_code;
}

static int train_or_launch(struct train_args *args, struct arena *a)
{
    return args->ranks > 1 && !start_is_launched() ? launch(args) : train(args, a);
}

static int print_example(const char *name)
{
    const char *text = page_find("example", name);
    if (text)
        return fputs(text, stdout), EXIT_FINE;
    char *names = page_names("example");
    int r = options_error("train", "unknown example \"%s\"; the examples are %s", name, names);
    free(names);
    return r;
}

static bool is_run(struct arena *a, const char *dir)
{
    return os_is_folder(dir) && !access(path_join(a, dir, "config.yaml"), R_OK);
}

/* The configuration to read; a resumed run has its own.  "--resume RUN" is taken as "--resume=RUN".
 * Returns NULL after it reported an error. */
static const char *configuration(struct train_args *args, int n, char **names, struct arena *a)
{
    const char *file = n ? names[0] : NULL;
    for (int i = 0; i < n && args->start.resume && !args->start.resume[0]; i++)
        if (is_run(a, names[i])) {
            args->start.resume = names[i];
            file = n-- == 2 ? names[!i] : NULL; /* argv stays unchanged, for a restart */
        }
    if (n == 1)
        return file;
    if (!n && args->start.resume && args->start.resume[0] && is_run(a, args->start.resume))
        return path_join(a, args->start.resume, "config.yaml");
    if (!n && args->start.resume && args->start.resume[0])
        options_error("train",
                      "--resume=%s: no run there (no config.yaml); cairn train --list lists the runs",
                      args->start.resume);
    else if (!n)
        options_error("train", args->start.resume
                                   ? "give a run: --resume=RUN takes its configuration from RUN/config.yaml"
                                   : "give a configuration");
    else
        options_error("train", "give only one configuration%s",
                      args->start.resume && !args->start.resume[0]
                          ? "; write --resume=DIR to name the folder of a run"
                          : "");
    return NULL;
}

int cmd_train(int argc, char **argv)
{
    struct train_args args = {
        .start = { .changes.steps = -1, .hang_after_s = WATCH_DEFAULT_S, .argc = argc, .argv = argv }
    };
    struct arena arena = { 0 };
    int rest;
    const struct opt_row rows[] = {
        OPT_LIST('s', "set", &args.set, "KEY=VALUE", "set a key of the configuration, overriding the file"),
        OPT_ATTACHED(
            'r', "resume", &args.start.resume, "DIR",
            "resume from the newest complete checkpoint (of the run in DIR, with its configuration)"),
        OPT_STR(0, "name", &args.start.name, "NAME",
                "put a run whose configuration names no folder into runs/NAME, or NAME-2 if that exists"),
        OPT_STR('d', "device", &args.start.changes.device, "NAME",
                "auto, cpu, hip:0, cuda:0 (default: train.device)"),
        OPT_INT('n', "steps", &args.start.changes.steps, "N", "train.steps"),
        OPT_INT(
            0, "ranks", &args.ranks, "N",
            "train with N processes on this machine, one for each GPU, or sharing the CPU (docs/ranks.md)"),
        OPT_FLAG(0, "fit", &args.start.fit,
                 "choose quantization, recomputation and offloading for the memory of the device"),
        OPT_FLAG(0, "dry-run", &args.start.dry_run, "print the plan and its memory; train nothing"),
        OPT_FLAG(0, "debug", &args.start.debug, "use kernels that check indices and find NaN and Inf; slow"),
        OPT_STR(0, "profile", &args.start.profile, "FILE",
                "time every op of a few steps; write a Perfetto trace to FILE"),
        OPT_STR(0, "json-events", &args.start.events, "FILE|-",
                "append one line of JSON per step to FILE, or to standard output"),
        OPT_STR(0, "example", &args.example, "NAME", "print a configuration to start from, such as gpt-tiny"),
        OPT_FLAG(0, "from-musubi", &args.musubi,
                 "the arguments after -- are a command of musubi-tuner that trains Wan"),
        OPT_FLAG('l', "list", &args.list, "list the runs (in DIR, if one is given)"),
        OPT_FLAG('j', "json", &args.json, "with --list: print JSON on stdout"),
        OPT_HANG_AFTER(&args.start.hang_after_s),
        OPT_END
    };
    static const struct opt_usage usage = {
        .synopsis =
            "cairn train [options] CONFIG.yaml\n       cairn train --resume=RUN [options]\n       cairn train --from-musubi [options] -- accelerate launch ... wan_train_network.py ...",
        .about = "Trains the model of a configuration (docs/config.md, or cairn help config) on the best "
                 "device. Checkpoints, log, samples and a plot are in the run's folder. Ctrl-C saves and "
                 "stops; --resume continues with the same bits. Exit status: 0 finished, 1 failed, 2 wrong "
                 "configuration, 3 no such device, 130 stopped by Ctrl-C (143: by SIGTERM).",
        .examples = "  cairn train --example gpt-tiny > tiny.yaml\n"
                    "  cairn train tiny.yaml --set data.path=book.txt\n"
                    "  cairn train --resume=runs/tiny --steps 500\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (args.ranks < 0 || args.ranks > RANKS_MOST)
        r = options_error("train", "--ranks is a number from 1 to %d", RANKS_MOST);
    else if (args.json && !args.list)
        r = options_error("train", "--json goes with --list; --json-events FILE logs a run as JSON");
    else if (args.example)
        r = print_example(args.example);
    else if (args.list)
        r = argc - rest > 1 ? options_error("train", "--list takes one folder at most")
                            : train_list(argc > rest ? argv[rest] : NULL, args.json);
    else if (args.musubi && argc == rest)
        r = options_error("train", "--from-musubi: give the command after --");
    else if (args.musubi) {
        args.start.musubi = (const char *const *)argv + rest;
        args.start.n_musubi = (size_t)(argc - rest);
        r = train_or_launch(&args, &arena);
    } else {
        args.start.file = configuration(&args, argc - rest, argv + rest, &arena);
        r = args.start.file ? train_or_launch(&args, &arena) : EXIT_USAGE;
    }
    opt_list_release(&args.set);
    arena_release(&arena);
    return r;
}
