/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/str.h"
#include "run/attempt_work.h"
#include "run/gpu_calls.h"
#include "run/evidence.h"
#include "run/idle_reason.h"
#include <unistd.h>

static uint64_t output_bytes(const struct life *l)
{
    return pump_bytes(l->out) + pump_bytes(l->err);
}

static void save_evidence(struct life *l, const struct tree *t, const char *name, bool stacks)
{
    const struct evidence e = {
        .tree = t, .proc = "/proc", .calls = l->o->calls, .monitor = l->o->monitor, .stacks = stacks
    };
    evidence_save(&e, l->o->journal, name);
}

static void say_evidence(struct life *l, const char *name)
{
    CLEANUP(mem_free) char *path = journal_path(l->o->journal, name);
    if (!path || access(path, R_OK))
        return;
    l->result.dumped = true;
    message_say(l->o->messages, "the state of each process is in %s", path);
}

/* If memory runs out there is no time for stacks.  Otherwise the trainer's time to save begins after they
 * are taken. */
static void stop_it(struct life *l, const struct tree *t, enum attempt_end why)
{
    bool hung = why == ATTEMPT_HUNG;
    const char *file = hung ? "hang.txt" : "memory-guard.txt";
    if (l->result.end == ATTEMPT_ENDED) /* an interrupted attempt stays one */
        l->result.end = why;
    if (hung)
        l->result.gpu_use = l->elsewhere ? DIAGNOSE_GPU_UNKNOWN : evidence_gpu_use(t, "/proc", l->o->calls);
    save_evidence(l, t, file, hung);
    l->stopping = clock_s();
    say_evidence(l, file);
    struct json *event = journal_event(hung ? "hang" : "memory-guard");
    memory_monitor_json(&l->o->monitor->now, event);
    json_add_text(event, "gpu_use", diagnose_gpu_use_name(l->result.gpu_use));
    journal_add(l->o->journal, event);
}

/* The reader of its output is blocked: `| less`, Ctrl-S. */
static bool is_held_up(const struct life *l)
{
    return pump_is_held_up(l->out) || pump_is_held_up(l->err) ||
           (l->launch.master >= 0 && terminal_is_held_up(l->launch.master));
}

/* Good reasons to be idle. */
static bool is_excused(struct life *l, const struct tree *t)
{
    if (tree_is_stopped(t) || is_held_up(l))
        return true;
    if (l->o->hang_explicit)
        return false;
    if (!recorder_saw_step(l->recorder) && clock_s() - l->start < 2 * l->o->hang_after_s)
        return true; /* loading models may take long */
    return idle_is_expected(t, l->o->calls, l->o->hang_after_s);
}

/* No copy takes that long, even if a CPU is busy. */
static bool is_inside_copy(const struct life *l)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct gpu_calls calls;
    gpu_calls_read(l->o->calls, &a, &calls);
    const struct gpu_call *culprit = gpu_calls_culprit(&calls, true);
    return culprit && !culprit->returned && gpu_calls_is_copy(culprit) &&
           culprit->begun_s >= l->polling.after_s;
}

/* A busy CPU may train, compile, or poll forever for a GPU that does not respond.  cairn cannot tell these
 * apart, so it only reports it, unless the recorder shows a copy that does not return. */
static void watch_polling(struct life *l, const struct tree *t, struct watch_sample s)
{
    if (l->polling_said || s.busy_percent < 0)
        return;
    s.cpu_ticks = 0;
    s.output_bytes += tree_io_bytes(t, "/proc");
    if (!watchdog_feed(&l->polling, &s))
        return;
    l->polling_said = !is_excused(l, t);
    watchdog_rest(&l->polling);
    if (!l->polling_said)
        return;
    if (is_inside_copy(l)) {
        message_say(l->o->messages, "a copy to the GPU has not returned for %.0f s: stopping the trainer",
                    l->polling.after_s);
        stop_it(l, t, ATTEMPT_HUNG);
        return;
    }
    save_evidence(l, t, "busy.txt", true);
    message_say(
        l->o->messages,
        "no output, no I/O and no GPU progress for %.0f s, but a CPU is busy: the trainer may be polling a GPU "
        "that does not respond. cairn does not stop it; see busy.txt in the journal",
        l->polling.after_s);
}

static void watch(struct life *l, const struct tree *t, double now)
{
    const struct watch_sample s = {
        .now_s = now,
        .output_bytes = output_bytes(l),
        .cpu_ticks = tree_ticks(t),
        .ticks_per_s = (int)sysconf(_SC_CLK_TCK),
        .busy_percent = l->o->monitor->now.busy_percent,
        .gpu_bytes = memory_monitor_gpu_bytes(&l->o->monitor->now),
    };
    watch_polling(l, t, s);
    if (l->stopping > 0 || !watchdog_feed(&l->watchdog, &s))
        return;
    if (is_excused(l, t)) {
        watchdog_rest(&l->watchdog);
        return;
    }
    message_say(l->o->messages,
                "the trainer hangs: no output, no CPU time and no GPU progress for %.0f s: stopping it",
                now - l->watchdog.since_s);
    stop_it(l, t, ATTEMPT_HUNG);
}

static void guard_memory(struct life *l, const struct tree *t)
{
    if (!memory_monitor_guard(l->o->monitor))
        return;
    message_say(l->o->messages,
                "host memory is nearly exhausted (%.1f GiB available): stopping the trainer before the "
                "machine freezes",
                (double)l->o->monitor->now.host_available_bytes / (1 << 30));
    stop_it(l, t, ATTEMPT_MEMORY);
}

/* Listing all processes takes milliseconds, so it is done only as often as the watchdog needs it. */
static double interval(double hang_after_s)
{
    double tenth = hang_after_s / 10;
    return tenth < 1 ? 1 : tenth > 10 ? 10 : tenth;
}

void attempt_watch(struct life *l, double now)
{
    if (now < l->next_watch && !memory_monitor_guard(l->o->monitor))
        return;
    CLEANUP(tree_release) struct tree t;
    tree_read(&t, "/proc", l->launch.guardian.pid);
    l->next_watch = now + interval(l->o->hang_after_s);
    l->elsewhere |= evidence_leads_away(&t);
    gpu_calls_tidy(l->o->calls);
    watch(l, &t, now);
    if (!l->stopping)
        guard_memory(l, &t);
}
