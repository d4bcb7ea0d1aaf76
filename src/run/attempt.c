/* SPDX-License-Identifier: Apache-2.0 */
#include "run/attempt.h"

#include "base/clock.h"
#include "base/str.h"
#include "host/command.h"
#include "os/fault.h"
#include "run/attempt_work.h"
#include "run/evidence.h"
#include "os/file.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* After the trainer has ended, its children may finish a line.  A blocked reader of our output is waited
 * for until a signal arrives. */
static const double linger_s = 2, drain_s = 2, tick_s = 1, stuck_s = 4;
/* Processes that the trainer left running: reported after notice_s, allowed finish_s after exit status 0,
 * and term_s between SIGTERM and SIGKILL. */
static const double notice_s = 0.3, finish_s = 10, term_s = 5;
/* Between SIGTERM and SIGKILL, if the trainer did not end in the time that it was given to save; not more than
 * that time. */
static const double after_term_s = 10;
/* A busy CPU is mostly a good sign, so a trainer with one is suspected only after this multiple of
 * --hang-after. */
static const double polling_patience = 3;
enum { LOOK_MS = 50 };
enum { MEMORY_EVENT_S = 10, MEMORY_EVENT_LATER_S = 60, MEMORY_OFTEN_S = 600 };

/* The signals that stop a trainer, in order. */
struct step_down {
    double after_s;
    int sig;
    bool all; /* the whole tree, not only its process group */
};
static const struct step_down step_downs[] = {
    { 0, SIGINT, false },
    { 5, SIGABRT, false }, /* only where Python's faulthandler waits for it, which then prints every stack */
    { 7, SIGTERM, true },
    { 11, SIGKILL, true },
};

const char *attempt_end_name(enum attempt_end e)
{
    static const char *const names[] = { "ended", "not-started", "hung", "out-of-host-memory",
                                         "interrupted" };
    return names[e];
}

/* Restarts the watchdogs: there was a good reason to be idle. */
static void rest(struct life *l)
{
    watchdog_rest(&l->watchdog);
    watchdog_rest(&l->polling);
}

static void kill_it(struct life *l)
{
    guardian_signal_all(&l->launch.guardian, SIGKILL);
    l->killed = l->killed > 0 ? l->killed : clock_s();
}

/* A trainer with its own terminal gets the keys while we are in the foreground.  A shell does not report
 * that change. */
static void take_keys(struct life *l)
{
    if (l->launch.master < 0 || l->launch.keys.raw || l->ended > 0)
        return;
    terminal_make_raw(&l->launch.keys);
    if (l->launch.keys.raw)
        terminal_copy_size(&l->launch.screen, l->launch.master); /* SIGWINCH goes to the foreground only */
}

/* The trainer saves its state and ends, or is ended when the time is over. */
static void begin_grace(struct life *l)
{
    if (l->grace > 0)
        return;
    l->grace = clock_s();
    guardian_signal(&l->launch.guardian, SIGINT);
    guardian_signal(&l->launch.guardian, SIGCONT);
}

static void end_grace(struct life *l, double now)
{
    double given = l->o->stop_grace_s;
    if (!l->grace || l->ended > 0 || now - l->grace < given)
        return;
    if (!l->grace_over) {
        l->grace_over = true;
        message_say(l->o->messages, "the trainer did not end within %d s: sending SIGTERM, then SIGKILL",
                    l->o->stop_grace_s);
        guardian_signal_all(&l->launch.guardian, SIGTERM);
    } else if (!l->killed && now - l->grace > given + (given < after_term_s ? given : after_term_s))
        kill_it(l);
}

/* The first signal goes to the trainer, the second one kills it.  A closed terminal sends two SIGHUP, from
 * kernel and shell. */
static void told_to_stop(struct life *l, int sig, bool pass_on)
{
    if (!l->ended || l->result.code)
        l->result.end = ATTEMPT_INTERRUPTED; /* no retry, whatever we were doing */
    if (l->o->stop_grace_s) {
        begin_grace(l);
        return;
    }
    if (l->stops && sig == SIGHUP)
        return;
    if (l->stops++)
        kill_it(l);
    else if (pass_on) {
        guardian_signal(&l->launch.guardian, sig);
        guardian_signal(&l->launch.guardian, SIGCONT); /* a stopped process would not handle it */
    }
}

/* As the signal does by default: it has no effect if no shell could continue us; then false. */
static bool stop_ourselves(int sig)
{
    sigset_t one, pending;
    sigemptyset(&one);
    sigaddset(&one, sig);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(sig);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    return !sigpending(&pending) && sigismember(&pending, SIGCONT);
}

/* Ctrl-Z: stops the trainer, gives the terminal back, and stops cairn.  SIGCONT undoes this in reverse
 * order; a trainer that needs the terminal asks for it again. */
static void pause_all(struct life *l, int sig)
{
    guardian_signal_all(&l->launch.guardian, SIGSTOP);
    launch_take_terminal(&l->launch);
    bool stopped = stop_ourselves(sig);
    rest(l);
    if (!stopped && sig == SIGTTIN) {
        message_say(l->o->messages,
                    "the trainer is stopped: it reads from the terminal, but runs in the background");
        return;
    }
    take_keys(l);
    guardian_signal_all(&l->launch.guardian, SIGCONT);
}

static void on_signal(struct life *l, int sig)
{
    switch (sig) {
    case SIGWINCH:
        if (l->launch.master >= 0)
            terminal_copy_size(&l->launch.screen, l->launch.master);
        else
            guardian_signal(&l->launch.guardian, sig);
        break;
    case SIGTSTP:
    case SIGTTIN:
        pause_all(l, sig);
        break;
    case SIGCONT: /* also after a SIGSTOP, which cannot be caught; meanwhile a shell has taken the terminal */
        l->launch.keys.raw = false;
        take_keys(l);
        rest(l);
        break;
    case SIGUSR1:
    case SIGUSR2:
        guardian_signal(&l->launch.guardian, sig);
        break;
    default:
        told_to_stop(l, sig, true);
    }
}

/* Keys go to the trainer's terminal, which turns some into signals.  Ctrl-Z is handled here, since it
 * stops the whole run, and Ctrl-C is counted, unless the trainer runs a shell with job control. */
static void on_keys(struct life *l)
{
    char keys[1024];
    ssize_t n = terminal_read(&l->launch.keys, keys, sizeof(keys));
    l->launch.keys.raw = n > 0; /* the terminal may be gone */
    for (ssize_t i = 0; i < n; i++) {
        char what = terminal_key(l->launch.master, (unsigned char)keys[i]);
        bool is_its = tcgetpgrp(l->launch.master) == l->launch.trainer;
        if (what == 'z' && is_its) {
            kill(0, SIGTSTP);
            continue;
        }
        launch_type(&l->launch, &keys[i], 1);
        if (what == 'c' && is_its)
            told_to_stop(l, SIGINT, false);
    }
}

static void ended(struct life *l, int status)
{
    l->ended = clock_s();
    l->result.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (l->launch.master < 0)
        launch_take_terminal(
            &l->launch); /* from now on Ctrl-C is for us; the trainer's terminal may still have output */
}

/* The trainer stopped because it read from the terminal in the background: it gets the foreground if we
 * have it. Otherwise our whole job stops, as it does after Ctrl-Z or if the trainer stopped itself. */
static void on_stopped(struct life *l, int sig)
{
    bool wants_terminal = sig == SIGTTIN || sig == SIGTTOU, has_own = l->launch.master >= 0;
    rest(l);
    if (wants_terminal && (has_own || terminal_is_ours(&l->launch.keys)))
        guardian_bring_to_front(&l->launch.guardian);
    else if (wants_terminal)
        kill(0, SIGTTIN);
    else if (has_own ? sig == SIGTSTP : launch_is_in_front(&l->launch))
        kill(0, SIGTSTP);
}

static void on_report(struct life *l)
{
    struct guardian_report r;
    while ((r = guardian_read(&l->launch.guardian)).event != GUARDIAN_NOTHING) {
        switch (r.event) {
        case GUARDIAN_STARTED:
            l->launch.trainer = (pid_t)r.value;
            break;
        case GUARDIAN_REFUSED:
            l->ended = clock_s();
            l->result.end = ATTEMPT_NOT_STARTED;
            l->result.error = r.value;
            l->result.code = r.value == ENOENT || r.value == ENOTDIR ? 127 : 126;
            return;
        case GUARDIAN_STOPPED:
            on_stopped(l, r.value);
            break;
        case GUARDIAN_HEARD:
            told_to_stop(l, r.value, false);
            break;
        case GUARDIAN_ENDED:
            ended(l, r.value);
            break;
        default:
            if (!l->ended)
                ended(l, SIGKILL); /* the guardian was killed, and with it the trainer */
            return;
        }
    }
}

/* ---- once a second ---- */

static void say_memory(struct life *l, double now)
{
    if (now < l->next_memory)
        return;
    struct json *event = journal_event("memory");
    memory_monitor_json(&l->o->monitor->now, event);
    journal_add(l->o->journal, event);
    l->next_memory = now + (now - l->start < MEMORY_OFTEN_S ? MEMORY_EVENT_S : MEMORY_EVENT_LATER_S);
}

static void step_down(struct life *l, double now)
{
    while (l->stopping > 0 && l->next_step_down < ARRAY_LEN(step_downs)) {
        const struct step_down *s = &step_downs[l->next_step_down];
        if (now - l->stopping < s->after_s)
            return;
        l->next_step_down++;
        if (s->sig == SIGABRT && !evidence_catches("/proc", (int)l->launch.trainer, SIGABRT))
            continue;
        if (s->sig == SIGKILL)
            kill_it(l);
        else
            (s->all ? guardian_signal_all : guardian_signal)(&l->launch.guardian, s->sig);
    }
}

static void say_troubles(struct life *l)
{
    const char *trouble = recorder_trouble(l->recorder);
    const struct cairn_error *journal = journal_trouble(l->o->journal);
    if (trouble)
        message_say(l->o->messages, "cannot write the log: %s", trouble);
    if (journal)
        message_say(l->o->messages, "%s", journal->msg);
}

static void on_tick(struct life *l, double now)
{
    say_troubles(l);
    take_keys(l);
    memory_monitor_read(l->o->monitor);
    say_memory(l, now);
    step_down(l, now);
    end_grace(l, now);
    if (l->killed > 0 && now - l->killed > stuck_s && !l->ended)
        ended(l, SIGKILL); /* it is stuck in the kernel, perhaps forever */
    if (l->stopping > 0 || l->ended > 0 || l->grace > 0)
        return;
    attempt_watch(l, now);
    step_down(l, clock_s());
}

/* ---- the loop ---- */

static void handle(struct life *l, const struct pollfd *fds)
{
    eventfd_t count;
    if (fds[1].revents)
        on_report(l);
    if (fds[2].revents && !eventfd_read(l->done, &count))
        l->n_done += (int)count;
    if (fds[3].revents)
        on_keys(l);
    for (int sig; fds[0].revents && (sig = signals_read(l->o->signals)) != 0;)
        on_signal(l, sig);
}

/* Until the trainer has ended and its output is copied, or that takes too long. */
static bool is_over(const struct life *l, double now)
{
    if (!l->ended)
        return false;
    return l->result.end == ATTEMPT_NOT_STARTED || l->n_done == l->n_pumps || now - l->ended > linger_s;
}

static void attend(struct life *l)
{
    for (double now = clock_s(); !is_over(l, now); now = clock_s()) {
        if (now >= l->next_tick) {
            on_tick(l, now);
            l->next_tick = now + tick_s;
        }
        double next = l->ended > 0 ? l->next_tick : observe_tick(l->o->observe, l->launch.guardian.pid, now);
        bool typing = l->launch.keys.raw && terminal_is_ours(&l->launch.keys);
        struct pollfd fds[] = {
            { l->o->signals->fd, POLLIN, 0 },
            { l->ended > 0 ? -1 : l->launch.guardian.fd, POLLIN, 0 },
            { l->done, POLLIN, 0 },
            { typing ? l->launch.keys.fd : -1, POLLIN, 0 },
        };
        double left = (next < l->next_tick ? next : l->next_tick) - clock_s();
        poll(fds, ARRAY_LEN(fds), left > 0 ? (int)(left * 1000) + 1 : 0);
        handle(l, fds);
    }
}

/* Names of the processes of the run that have not ended; NULL: none. */
static const char *leftovers(const struct life *l, struct arena *a)
{
    CLEANUP(tree_release) struct tree t;
    CLEANUP(str_release) struct str names = { 0 };
    tree_read(&t, "/proc", l->launch.guardian.pid);
    if (!tree_is_alive(&t))
        return NULL;
    for (size_t i = 0; i < t.n && i < 4; i++)
        str_addf(&names, "%s%s (%d)", i ? ", " : "", t.process[i].name, (int)t.process[i].pid);
    return arena_printf(a, "%s%s", names.s, t.n > 4 ? " ..." : "");
}

/* Waits until no process is left, the time is over, or a signal arrives; true if some are left and no
 * signal came. */
static bool wait_for_leftovers(struct life *l, double until)
{
    int stops = l->stops;
    for (;;) {
        CLEANUP(arena_release) struct arena a = { 0 };
        if (l->stops > stops || !leftovers(l, &a))
            return false;
        if (clock_s() >= until)
            return true;
        struct pollfd signals = { l->o->signals->fd, POLLIN, 0 };
        poll(&signals, 1, LOOK_MS);
        for (int sig; (sig = signals_read(l->o->signals)) != 0;)
            on_signal(l, sig);
    }
}

/* Processes that the trainer left running may still write a checkpoint, or hold GPU memory.  After exit
 * status 0 cairn waits for them, then sends SIGTERM; the guardian kills the rest. */
static void end_leftovers(struct life *l)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    bool well = l->result.end == ATTEMPT_ENDED && l->result.code == 0;
    const char *names = leftovers(l, &a);
    if (!names || l->result.end == ATTEMPT_MEMORY || (well && !wait_for_leftovers(l, clock_s() + notice_s)))
        return;
    launch_take_terminal(&l->launch); /* Ctrl-C is for us now */
    if (well) {
        message_say(l->o->messages,
                    "waiting up to %.0f s for processes that the trainer left running (Ctrl-C ends them): %s",
                    finish_s, names);
        if (!wait_for_leftovers(l, clock_s() + finish_s) || !(names = leftovers(l, &a)))
            return;
    }
    message_say(l->o->messages,
                "ending processes that the trainer left running (SIGTERM, after %.0f s SIGKILL): %s", term_s,
                names);
    guardian_signal_all(&l->launch.guardian, SIGTERM);
    guardian_signal_all(&l->launch.guardian, SIGCONT);
    wait_for_leftovers(l, clock_s() + term_s);
}

/* All writers are dead, so the pumps end, unless the reader of our output is blocked. */
static void drain(struct life *l)
{
    pump_hurry(l->out);
    pump_hurry(l->err);
    double until = clock_s() + drain_s;
    while (l->n_done < l->n_pumps && !(l->stops && clock_s() > until)) {
        struct pollfd fds[] = { { l->o->signals->fd, POLLIN, 0 }, { l->done, POLLIN, 0 } };
        eventfd_t count;
        poll(fds, 2, 100);
        if (fds[1].revents && !eventfd_read(l->done, &count))
            l->n_done += (int)count;
        for (int sig; (sig = signals_read(l->o->signals)) != 0;)
            on_signal(l, sig);
    }
}

static void say_lost_output(struct life *l)
{
    int e = pump_error(l->out) ? pump_error(l->out) : pump_error(l->err);
    if (!e)
        return;
    message_say(l->o->messages, "cannot write the trainer's output: %s", strerror(e));
    l->result.lost_output = true;
}

/* If the reader of our output has left, the trainer's death is no failure, and nobody would see a retry.  A trainer that
 * read from a terminal may die of its end before any signal tells. */
static void note_lost_reader(struct life *l, bool terminal_gone)
{
    bool left = pump_reader_left(l->out) || pump_reader_left(l->err) || terminal_gone;
    if (left && l->result.end == ATTEMPT_ENDED && l->result.code)
        l->result.end = ATTEMPT_INTERRUPTED;
}

static int start_pumps(struct life *l, struct cairn_error *err)
{
    int null = l->o->detached || l->o->silent ? os_open_null() : -1;
    if (pump_start(&l->out, l->launch.out, null < 0 ? STDOUT_FILENO : null, l->recorder, l->done, err))
        return -1;
    l->launch.out = -1;
    l->n_pumps = 1;
    if (l->launch.err < 0)
        return 0;
    if (pump_start(&l->err, l->launch.err, null < 0 ? STDERR_FILENO : null, l->recorder, l->done, err))
        return -1;
    l->launch.err = -1;
    l->n_pumps = 2;
    return 0;
}

static int start(struct life *l, struct cairn_error *err)
{
    const struct attempt_options *o = l->o;
    CLEANUP(mem_free) char *log = journal_path(o->journal, "log");
    const struct launch_options lo = {
        .argv = o->argv, .env = o->env, .mask = o->signals->before, .detached = o->detached, .lock = o->lock
    };
    const struct recorder_options ro = { .log = log, .copy = o->copy, .diagnoser = o->diagnoser };
    l->done = fault_hit() ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->done < 0)
        return cairn_fail_errno(err, "eventfd");
    /* Forks first, threads after. */
    if (launch_start(&l->launch, &lo, err) || recorder_start(&l->recorder, &ro, err))
        return -1;
    return start_pumps(l, err);
}

static void finish(struct life *l)
{
    if (l->ended > 0 && !l->killed)
        end_leftovers(l);
    bool terminal_gone = terminal_is_gone(&l->launch.keys);
    l->result.clean = launch_end(&l->launch);
    drain(l);
    l->result.abandoned = l->n_done < l->n_pumps;
    if (l->result.abandoned)
        return; /* a blocked reader: the threads end with the process */
    say_lost_output(l);
    note_lost_reader(l, terminal_gone);
    pump_join(l->out);
    pump_join(l->err);
    fd_close(&l->done);
    if (!l->recorder)
        return;
    uint64_t lost = recorder_stop(l->recorder);
    if (lost)
        message_say(l->o->messages, "the log lacks %llu bytes of output: the disk was too slow",
                    (unsigned long long)lost);
    say_troubles(l);
    l->result.saw_step = recorder_saw_step(l->recorder);
    recorder_free(l->recorder);
}

int attempt_run(const struct attempt_options *o, struct attempt *out, struct cairn_error *err)
{
    struct life l = { .o = o, .done = -1, .start = clock_s(), .launch.guardian.fd = -1 };
    watchdog_init(&l.watchdog, o->hang_after_s);
    watchdog_init(&l.polling, o->hang_after_s * polling_patience);
    memory_monitor_begin(o->monitor);
    l.launch.master = l.launch.out = l.launch.err = l.launch.keys.fd = l.launch.screen.fd = -1;
    int r = start(&l, err);
    if (!r)
        attend(&l);
    memory_monitor_end(o->monitor);
    finish(&l);
    l.result.memory = o->monitor->memory;
    if (l.elsewhere || command_is_remote(o->argv[0]))
        l.result.memory.host_least_bytes = -1; /* of this host; the limit may be another's */
    l.result.seconds = clock_s() - l.start;
    if (!r)
        *out = l.result;
    return r;
}
