/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/pages.h"
#include "cli/print.h"
#include "cli/train_list.h"
#include "host/root.h"
#include "os/stop.h"
#include "os/terminal.h"
#include "start/train.h"
#include "start/watch_calls.h"
#include "os/info.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct train_args {
    struct start_options start;
    struct opt_list set; /* --set */
    const char *example;
    bool list, json;
    bool musubi; /* the arguments are a command of musubi-tuner */
};

/* ---- signals: the first one saves and stops after the step, the second one quits at once ---- */

static volatile sig_atomic_t stop_signal;
static bool on_terminal; /* the progress line has no newline yet */

static void on_signal(int sig)
{
    if (stop_signal)
        _exit(128 + sig);
    stop_signal = sig;
    static const char words[] =
        "\ncairn: will save and stop after this step; press Ctrl-C again to quit now\n";
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

static int exit_of(enum train_end end)
{
    if (end != TRAIN_STOPPED)
        return EXIT_FINE;
    return 128 + (stop_signal ? stop_signal : SIGINT); /* or control.json asked for it */
}

static int train(struct train_args *args, struct arena *a)
{
    struct start_options *o = &args->start;
    struct cairn_error err = { 0 };
    struct start start;
    enum train_end end;
    o->changes.set = args->set.item;
    o->changes.n_set = args->set.n;
    o->talk = o->dry_run ? stdout : stderr; /* the plan is the result of a dry run */
    o->messages = &stderr_messages;
    o->is_stopped = is_stopped;
    o->stop = &stop_signal;
    if (start_prepare(&start, o, a, &err))
        return print_error(&err);
    catch_signals();
    return start_run(&start, &end, &err) ? print_error(&err) : exit_of(end);
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
    if (args.json && !args.list)
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
        r = train(&args, &arena);
    } else {
        args.start.file = configuration(&args, argc - rest, argv + rest, &arena);
        r = args.start.file ? train(&args, &arena) : EXIT_USAGE;
    }
    opt_list_release(&args.set);
    arena_release(&arena);
    return r;
}
