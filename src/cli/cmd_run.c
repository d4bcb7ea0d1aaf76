/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/gpu_json.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/run_print.h"
#include "rules/checks.h"
#include "run/state.h"
#include "run/supervise.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { DEFAULT_HANG_S = 600, DEFAULT_RETRIES = 2, CODE_OURS = 125 };

struct run_options {
    const char *root, *torch_dir, *rocm_dir, *gfx, *trainer, *preload, *keep_log, *resume_cmd, *json_events,
        *hang;
    int gpu, retries, hang_after_s;
    bool debug, no_env, strict, no_preflight, allow_cpu, detach;
    struct opt_list keep, with;
    char **argv;
};

/* What a run needs from its beginning to its end. */
struct stage {
    const struct run_options *o;
    struct facts *facts;
    struct plan plan;
    struct journal journal;
    struct arena arena;
    int parent; /* the pipe to the one who waits for our start; -1: nobody does */
};

static void say_and_note(void *context, const char *text)
{
    struct stage *s = context;
    struct json *event = journal_event("note");
    json_add_text(event, "text", text);
    journal_add(&s->journal, event);
    run_say(text);
}

static int make_plan(struct stage *s, struct cairn_error *err)
{
    const struct run_options *o = s->o;
    const struct plan_options po = {
        .gpu = o->gpu,
        .debug = o->debug,
        .trainer = o->trainer,
        .keep = o->keep.item,
        .with = o->with.item,
    };
    if (o->gfx && facts_set_gfx(s->facts, o->gfx, err))
        return -1;
    return plan_build(s->facts, &po, &s->arena, &s->plan, err);
}

/* False: --strict, and something is wrong. */
static bool preflight(struct stage *s)
{
    struct doctor d = { 0 };
    if (s->o->no_preflight)
        return true;
    struct facts planned = *s->facts;
    if (!s->o->no_env)
        planned.env = plan_environment(s->facts, &s->plan, &s->arena);
    struct plan plan = { 0 };
    const struct plan_options po = { .gpu = s->o->gpu, .debug = s->o->debug };
    struct cairn_error ignored = { 0 };
    if (plan_build(&planned, &po, &s->arena, &plan, &ignored))
        plan = s->plan;
    doctor_run(&planned, &plan, &s->arena, &d);
    size_t failures = run_print_preflight(&d);
    if (failures && s->o->strict)
        run_say("not started, because of --strict");
    return !failures || !s->o->strict;
}

static void open_journal(struct stage *s)
{
    CLEANUP(mem_free) char *env = run_env_text(&s->plan);
    CLEANUP(json_cleanup) struct json *facts = gpu_json(s->facts);
    struct json *event = journal_event("start");
    struct json *command = json_add_array(event, "command");
    for (char **arg = s->o->argv; *arg; arg++)
        json_add_text(command, NULL, *arg);
    json_add_int(event, "pid", getpid());
    journal_add(&s->journal, event);
    journal_write_text(&s->journal, "env", s->o->no_env ? "" : env);
    journal_write(&s->journal, "facts.json", facts);
}

static void close_journal(struct stage *s, const struct supervise_result *r)
{
    CLEANUP(json_cleanup) struct json *verdict = run_verdict_json(r, s->o->argv);
    struct json *event = journal_event("end");
    json_add_int(event, "code", r->code);
    journal_add(&s->journal, event);
    journal_write(&s->journal, "verdict.json", verdict);
    const struct cairn_error *trouble = journal_trouble(&s->journal);
    if (trouble)
        say_and_note(s, arena_printf(&s->arena, "the journal is not kept: %s", trouble->msg));
}

/* The one who started us may go; from here on we talk to the journal alone. */
static void detach(struct stage *s)
{
    if (s->parent < 0)
        return;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    (void)!write(s->parent, "", 1);
    close(s->parent);
}

static int train(struct stage *s)
{
    static const int forwarded[] = { SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                                     SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT };
    const struct run_options *o = s->o;
    const struct talk talk = { say_and_note, s };
    struct cairn_error err = { 0 };
    CLEANUP(signals_close) struct signals signals = { .fd = -1 };
    const struct supervise_options so = {
        .argv = o->argv,
        .facts = s->facts,
        .plan = &s->plan,
        .env = o->no_env ? s->facts->env : plan_environment(s->facts, &s->plan, &s->arena),
        .gfx = o->gfx,
        .trainer = o->trainer,
        .resume_cmd = o->resume_cmd,
        .keep_log = o->keep_log,
        .retries = o->retries,
        .hang_after_s = o->hang_after_s,
        .hang_explicit = o->hang != NULL,
        .allow_cpu = o->allow_cpu,
        .detached = o->detach,
        .journal = &s->journal,
        .signals = &signals,
        .talk = &talk,
    };
    struct supervise_result result;
    if (signals_open(&signals, forwarded, ARRAY_LEN(forwarded), &err) ||
        supervise(&so, &s->arena, &result, &err))
        return print_error(&err), CODE_OURS;
    close_journal(s, &result);
    run_print_end(&result, o->argv, &s->journal);
    return result.code;
}

static int prepare_and_train(struct stage *s)
{
    struct cairn_error err = { 0 };
    const char *state = NULL;
    if (make_plan(s, &err))
        return print_error(&err);
    if (!preflight(s))
        return EXIT_LACKS;
    if (state_dir(s->facts->env, &s->arena, &state, &err))
        run_say(arena_printf(&s->arena, "the journal is not kept: %s", err.msg));
    if (journal_open(&s->journal, state, s->o->json_events, &err))
        return print_error(&err);
    open_journal(s);
    run_print_summary(s->facts, &s->plan, !s->o->no_env);
    if (s->o->detach && s->journal.dir)
        run_say(
            arena_printf(&s->arena, "detached as process %d, journal: %s", (int)getpid(), s->journal.dir));
    detach(s);
    signal(SIGPIPE, SIG_IGN);
    int code = train(s);
    if (state)
        journal_prune(state);
    return code;
}

static int run_here(const struct run_options *o, int parent)
{
    const struct facts_options fo = {
        .root = o->root,
        .torch_dir = o->torch_dir,
        .rocm_dir = o->rocm_dir,
        .env = (const char *const *)environ,
        .parts = FACTS_ALL,
    };
    CLEANUP(facts_release) struct facts f;
    struct cairn_error err = { 0 };
    if (facts_read(&f, &fo, &err))
        return print_error(&err);
    struct stage s = { .o = o, .facts = &f, .parent = parent };
    int code = prepare_and_train(&s);
    journal_close(&s.journal);
    arena_release(&s.arena);
    return code;
}

/* Returns in the parent when the run has started, or with its exit code if it did not come so far. */
static int run_detached(const struct run_options *o)
{
    int fds[2], status = 0;
    struct cairn_error err = { 0 };
    if (pipe2(fds, O_CLOEXEC)) {
        cairn_fail_errno(&err, "pipe");
        return print_error(&err);
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        cairn_fail_errno(&err, "fork");
        return print_error(&err);
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
    return WIFEXITED(status) ? WEXITSTATUS(status) : CODE_OURS;
}

static int check_log(const char *path)
{
    struct cairn_error err = { 0 };
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0) {
        cairn_fail_errno(&err, "open %s", path);
        cairn_hint(&err, "--keep-log wants a file that can be written");
        print_error(&err);
        return EXIT_USAGE;
    }
    close(fd);
    return OPTIONS_GO;
}

static int check_words(struct run_options *o, const char *command)
{
    uint64_t seconds;
    if (!o->argv[0])
        return options_error(command, "wants a command: cairn run [options] -- COMMAND [arguments]");
    if (o->hang && (!cairn_parse_u64(o->hang, &seconds) || seconds > 30 * 24 * 3600))
        return options_error(command, "--hang-after wants seconds, not \"%s\"", o->hang);
    o->hang_after_s = o->hang ? (int)seconds : DEFAULT_HANG_S;
    if (o->preload && !str_eq(o->preload, "auto") && !str_eq(o->preload, "none"))
        run_say("this build has no library to preload; running without it");
    return o->keep_log ? check_log(o->keep_log) : OPTIONS_GO;
}

static int run_command(struct run_options *o, int argc, char **argv)
{
    const struct opt_row rows[] = {
        OPT_INT('g', "gpu", &o->gpu, "N", "train on GPU N only, and hide the others"),
        OPT_STR('t', "trainer", &o->trainer, "NAME", "the trainer, where the command does not show it"),
        OPT_INT('r', "retries", &o->retries, "N",
                "try again at most N times, with one change each (default 2)"),
        OPT_STR(0, "hang-after", &o->hang, "SECONDS",
                "stop it when nothing moves for so long (default 600; 0: never)"),
        OPT_STR(0, "resume-cmd", &o->resume_cmd, "CMD",
                "a shell command that resumes the training; used for retries after its first step"),
        OPT_FLAG(0, "allow-cpu", &o->allow_cpu, "as the last resort train on the CPU"),
        OPT_FLAG('d', "debug", &o->debug,
                 "add the variables that help to find an error; they make training slow"),
        OPT_FLAG(0, "no-env", &o->no_env, "leave the environment as it is"),
        OPT_LIST(0, "keep", &o->keep, "NAME",
                 "keep this variable of yours even if it harms; may be repeated"),
        OPT_LIST(0, "with", &o->with, "NAME=VALUE", "add this variable; may be repeated"),
        OPT_FLAG(0, "strict", &o->strict, "do not start where the doctor finds a failure (exit 3)"),
        OPT_FLAG(0, "no-preflight", &o->no_preflight, "do not ask the doctor first"),
        OPT_FLAG(0, "detach", &o->detach,
                 "run in the background; the trainer outlives the terminal and cairn itself"),
        OPT_STR(0, "keep-log", &o->keep_log, "FILE",
                "also append everything that the trainer prints to FILE"),
        OPT_STR(0, "json-events", &o->json_events, "FILE",
                "also write the journal's events to FILE, one JSON object a line"),
        OPT_STR(0, "preload", &o->preload, "WHAT",
                "auto or none; libraries to preload are not in this build"),
        OPT_STR(0, "gfx", &o->gfx, "NAME", "the chip, told by hand"),
        OPT_STR(0, "torch", &o->torch_dir, "DIR", "the PyTorch in this site-packages or virtual environment"),
        OPT_STR(0, "rocm", &o->rocm_dir, "DIR", "the ROCm in this directory"),
        OPT_STR(0, "root", &o->root, "DIR", "look at the tree DIR instead of this machine's /"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn run [options] [--] COMMAND [arguments]",
        .about =
            "Starts a trainer with the environment that this machine needs, keeps its output, watches it, and says what "
            "went wrong when it fails. Where that cannot destroy work it tries again, with one change at a time. "
            "Returns the trainer's exit status, or 128 and the signal that ended it; 127 if there is no such "
            "command, 126 if it cannot be executed.",
        .examples = "  cairn run -- python train.py --config my.yaml\n"
                    "  cairn run --retries 0 --hang-after 1800 -- accelerate launch train_network.py\n",
    };
    int rest, r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    o->argv = argv + rest;
    r = check_words(o, argv[0]);
    if (r != OPTIONS_GO)
        return r;
    return o->detach ? run_detached(o) : run_here(o, -1);
}

int cmd_run(int argc, char **argv)
{
    struct run_options o = { .gpu = -1, .retries = DEFAULT_RETRIES };
    int code = run_command(&o, argc, argv);
    opt_list_release(&o.keep);
    opt_list_release(&o.with);
    return code;
}
