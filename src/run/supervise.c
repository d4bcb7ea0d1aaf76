/* SPDX-License-Identifier: Apache-2.0 */
#include "run/supervise.h"

#include "base/str.h"
#include "run/context.h"
#include "run/optimizer.h"
#include "run/kernel_caches.h"
#include "run/supervise_work.h"
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

/* Exit codes of a trainer that cairn stopped.  After a hang: that of timeout(1), whatever the trainer made
 * of the signals, so that a script can tell it from Ctrl-C.  After OOM, if the trainer itself exits with
 * 0: that of a kill. */
enum { CODE_HUNG = 124, CODE_KILLED = 137, SETTLE_MS = 3000 };

/* ---- before an attempt ---- */

static void add_argv(struct json *event, char *const *argv)
{
    struct json *list = json_add_array(event, "command");
    for (; *argv; argv++)
        json_add_text(list, NULL, *argv);
}

static void journal_attempt(struct run *r)
{
    struct json *event = journal_event("attempt");
    json_add_int(event, "attempt", (int64_t)r->result.n_tries + 1);
    add_argv(event, r->argv);
    json_add_text(event, "change", r->change);
    json_add_text(event, "resumed", r->resumed);
    journal_add(r->o->journal, event);
}

static int64_t log_bytes(const struct journal *j)
{
    CLEANUP(mem_free) char *path = journal_path(j, "log");
    struct stat st;
    return path && !stat(path, &st) ? (int64_t)st.st_size : 0;
}

/* ---- after an attempt ---- */

static void journal_verdict(struct run *r, const struct supervise_try *t)
{
    struct json *event = journal_event("verdict");
    json_add_int(event, "attempt", (int64_t)r->result.n_tries);
    json_add_text(event, "end", attempt_end_name(t->attempt.end));
    json_add_int(event, "code", t->attempt.code);
    json_add_real(event, "seconds", t->attempt.seconds);
    json_add_bool(event, "saw_step", t->attempt.saw_step);
    json_add_text(event, "class", t->diagnosis.class_id);
    json_add_text(event, "cause", t->diagnosis.cause);
    const struct gpu_call *culprit = supervise_culprit(t);
    json_add_text(event, "gpu_call", culprit ? gpu_calls_say(culprit, r->a) : NULL);
    journal_add(r->o->journal, event);
}

static bool needs_diagnosis(const struct attempt *a)
{
    return !a->abandoned && a->end != ATTEMPT_NOT_STARTED && a->end != ATTEMPT_INTERRUPTED && a->code != 0;
}

/* Removes the files, so that those of the next attempt are its own. */
static void read_calls(struct run *r, struct supervise_try *t)
{
    CLEANUP(str_release) struct str text = { 0 };
    if (needs_diagnosis(&t->attempt))
        gpu_calls_read(r->o->calls, r->a, &t->calls);
    gpu_calls_remove(r->o->calls);
    gpu_calls_text(&t->calls, &text);
    if (text.len)
        journal_write_text(r->o->journal, "calls.txt", text.s);
}

static const char *hang_file(struct run *r, const struct supervise_try *t)
{
    return t->attempt.dumped && t->attempt.end == ATTEMPT_HUNG
               ? arena_printf(r->a, "%s/hang.txt", r->o->journal->dir)
               : NULL;
}

/* t NULL: before an attempt. */
static struct diagnose_context context_of(struct run *r, const struct supervise_try *t)
{
    const struct gpu_call *culprit = t ? supervise_culprit(t) : NULL;
    const struct torch_facts *torch = facts_torch(&r->actual.facts);
    struct diagnose_context ctx = {
        .facts = &r->actual.facts,
        .gfx = r->o->gfx,
        .own_torch = torch && !torch->guess,
        .exit_code = -1,
        .in_copy = culprit && gpu_calls_is_copy(culprit),
        .env = actual_env(&r->actual),
        .plan = &r->plan,
    };
    if (!t)
        return ctx;
    ctx.exit_code = t->attempt.code;
    ctx.hung = t->attempt.end == ATTEMPT_HUNG;
    ctx.memory_guard = t->attempt.end == ATTEMPT_MEMORY;
    ctx.memory = t->attempt.memory;
    ctx.gpu_use = t->attempt.gpu_use;
    ctx.hang_file = hang_file(r, t);
    ctx.refused = t->calls.refused;
    ctx.refused_bytes = t->calls.refused_bytes;
    return ctx;
}

static void keep_context(struct run *r, const struct diagnose_context *ctx)
{
    CLEANUP(json_cleanup) struct json *v = context_json(ctx);
    journal_write(r->o->journal, CONTEXT_FILE, v);
}

static void diagnose(struct run *r, struct diagnoser *d, struct supervise_try *t)
{
    const struct diagnose_context ctx = context_of(r, t);
    if (!needs_diagnosis(&t->attempt))
        return;
    diagnoser_finish(d, &ctx, r->a, &t->diagnosis);
    keep_context(r, &ctx);
}

static int one_attempt(struct run *r, struct supervise_try *t, struct cairn_error *err)
{
    struct diagnoser *d = NULL;
    if (diagnoser_new(&d, err))
        return -1;
    const struct attempt_options ao = {
        .argv = r->argv,
        .env = r->env,
        .detached = r->o->detached,
        .lock = r->o->lock,
        .silent = r->o->silent,
        .stop_grace_s = r->o->stop_grace_s,
        .hang_after_s = r->o->hang_after_s,
        .hang_explicit = r->o->hang_explicit,
        .copy = r->o->keep_log,
        .calls = r->o->calls,
        .observe = &r->actual.observe,
        .diagnoser = d,
        .monitor = &r->monitor,
        .journal = r->o->journal,
        .signals = r->o->signals,
        .messages = r->o->messages,
    };
    journal_attempt(r);
    actual_begin(&r->actual, r->argv, r->env);
    const struct diagnose_context before = context_of(r, NULL);
    keep_context(r, &before); /* cairn itself may be killed */
    t->log_offset_bytes = log_bytes(r->o->journal);
    int failed = attempt_run(&ao, &t->attempt, err);
    /* Ctrl-C went to the nested run. */
    if (!failed && t->attempt.end == ATTEMPT_ENDED && journal_has_inner(r->o->journal) &&
        (t->attempt.code == 128 + SIGINT || t->attempt.code == 128 + SIGQUIT))
        t->attempt.end = ATTEMPT_INTERRUPTED;
    if (!failed && t->attempt.end == ATTEMPT_HUNG)
        t->attempt.code = CODE_HUNG;
    if (!failed && t->attempt.code == 0 && t->attempt.end == ATTEMPT_MEMORY)
        t->attempt.code = CODE_KILLED;
    if (!failed) {
        read_calls(r, t);
        diagnose(r, d, t);
    }
    if (failed || !t->attempt.abandoned)
        diagnoser_free(d);
    t->change = r->change;
    t->resumed = r->resumed;
    return failed;
}

/* ---- between two attempts ---- */

/* The environment of the next attempt, and one list of all changes, each name once. */
static void change_env(struct run *r, const struct diagnose_fix *fix)
{
    struct supervise_result *out = &r->result;
    r->env = plan_change(r->env, fix->set, fix->n_set, fix->unset, fix->n_unset, r->a);
    for (size_t i = 0; i < fix->n_set; i++) {
        struct plan_var *known = (struct plan_var *)plan_find(out->set, out->n_set, fix->set[i].name);
        if (!known)
            known = ARENA_PUSH(r->a, out->set, out->n_set);
        *known = fix->set[i];
    }
    for (size_t i = 0; i < fix->n_unset; i++)
        *ARENA_PUSH(r->a, out->unset, out->n_unset) = fix->unset[i];
}

/* The last resort.  Neither it nor the fixes before it are worth saving. */
static void use_cpu(struct run *r)
{
    r->result.n_set = r->result.n_unset = 0;
    r->env = plan_change(r->env, &supervise_no_gpu, 1, NULL, 0, r->a);
}

/* Gives a reset GPU some time.  A signal ends the wait. */
static void wait_for_reset(struct run *r)
{
    struct pollfd signals = { r->o->signals->fd, POLLIN, 0 };
    poll(&signals, 1, SETTLE_MS);
}

static void clear_caches(struct run *r)
{
    struct cache_move *moved;
    const char *trouble;
    size_t n = kernel_caches_move(r->env, r->a, &moved, &trouble);
    for (size_t i = 0; i < n; i++)
        message_say(r->o->messages, "moved %s to %s", moved[i].from, moved[i].to);
    if (trouble)
        message_say(r->o->messages, "%s", trouble);
}

static void use_optimizer(struct run *r)
{
    struct optimizer_change c = optimizer_replace(r->original, r->a);
    if (!c.argv)
        return;
    r->original = c.argv;
    r->change = c.text;
}

static void apply(struct run *r, const struct diagnose_fix *fix)
{
    r->change = ladder_describe(fix, r->a);
    switch (fix->action) {
    case DIAGNOSE_ACT_ENV:
    case DIAGNOSE_ACT_OTHER_GPU:
        change_env(r, fix);
        break;
    case DIAGNOSE_ACT_RESTART:
        wait_for_reset(r);
        break;
    case DIAGNOSE_ACT_CLEAR_CACHES:
        clear_caches(r);
        break;
    case DIAGNOSE_ACT_CPU:
        use_cpu(r);
        break;
    case DIAGNOSE_ACT_OPTIMIZER:
        use_optimizer(r);
        break;
    case DIAGNOSE_ACT_RESUME:
    case DIAGNOSE_ACT_NONE:
        break;
    }
}

static void journal_change(struct run *r, const struct diagnose_fix *fix)
{
    struct json *event = journal_event("change");
    json_add_text(event, "action", diagnose_action_name(fix->action));
    json_add_text(event, "change", r->change);
    json_add_text(event, "why", fix->text);
    journal_add(r->o->journal, event);
}

/* The next attempt resumes from the last saved state, if there is one. */
static void resume_from_state(struct run *r)
{
    struct resume resume;
    r->argv = r->original;
    r->resumed = NULL;
    if (!r->trained)
        return;
    resume_find(r->original, r->o->trainer, r->o->resume_cmd, r->a, &resume);
    r->argv = resume.argv;
    r->resumed = resume.why;
}

/* The trainer loaded another PyTorch than the plan was made for; that may be the cause. */
static bool replan(struct run *r, const struct ladder_input *look)
{
    const char **changed = NULL;
    size_t n = 0;
    struct replan fresh;
    if (look->diagnosis->severity != DIAGNOSE_ERROR || look->retries_left <= 0 ||
        (look->saw_step && !look->can_resume))
        return false;
    for (size_t i = 0; i < r->result.n_set; i++)
        *ARENA_PUSH(r->a, changed, n) = r->result.set[i].name;
    for (size_t i = 0; i < r->result.n_unset; i++)
        *ARENA_PUSH(r->a, changed, n) = r->result.unset[i];
    for (const char *const *k = look->keep; *k; k++)
        *ARENA_PUSH(r->a, changed, n) = *k;
    *ARENA_PUSH(r->a, changed, n) = NULL;
    if (!actual_replan(&r->actual, changed, &fresh))
        return false;
    const struct diagnose_fix fix = {
        .text = arena_printf(r->a, "the environment for the PyTorch in %s, which the trainer loaded",
                             r->actual.torch),
        .action = DIAGNOSE_ACT_ENV,
        .set = fresh.set,
        .n_set = fresh.n_set,
        .unset = fresh.unset,
        .n_unset = fresh.n_unset,
    };
    r->plan = fresh.plan;
    r->env = plan_change(r->env, fresh.set, fresh.n_set, fresh.unset, fresh.n_unset, r->a);
    r->change = ladder_describe(&fix, r->a);
    resume_from_state(r);
    journal_change(r, &fix);
    supervise_say_retry(r, &fix);
    return true;
}

/* Prepares the next attempt; false if there is none. */
static bool climb(struct run *r, const struct supervise_try *t)
{
    struct resume resume;
    if (t->attempt.end == ATTEMPT_ENDED && journal_has_inner(r->o->journal)) {
        message_say(r->o->messages, "not retrying: a `cairn run` inside this one has already done so");
        return false;
    }
    resume_find(r->original, r->o->trainer, r->o->resume_cmd, r->a, &resume);
    const struct ladder_input look = {
        .diagnosis = &t->diagnosis,
        .env = actual_env(&r->actual),
        .keep = actual_kept(&r->actual, r->o->keep),
        .retries_left = r->o->retries - ((int)r->result.n_tries - 1),
        .allow_cpu = r->o->allow_cpu,
        .can_optimize = optimizer_replace(r->original, r->a).argv != NULL,
        .has_caches = kernel_caches_exist(r->env),
        .saw_step = r->trained,
        .can_resume = resume.way != RESUME_UNKNOWN,
    };
    if (replan(r, &look))
        return true;
    struct ladder_step step = ladder_next(&r->ladder, &look, r->a);
    if (step.word != LADDER_RETRY) {
        supervise_say_end(r, &t->diagnosis, &step, &resume);
        return false;
    }
    ladder_note(&r->ladder, step.fix, r->env, r->a);
    apply(r, step.fix);
    resume_from_state(r);
    journal_change(r, step.fix);
    supervise_say_retry(r, step.fix);
    return true;
}

bool supervise_worked(const struct supervise_result *r)
{
    const struct attempt *last = r->n_tries ? &r->tries[r->n_tries - 1].attempt : NULL;
    return last && ((last->end == ATTEMPT_ENDED && last->code == 0) ||
                    (last->end == ATTEMPT_INTERRUPTED && last->saw_step));
}

int supervise(const struct supervise_options *o, struct arena *a, struct supervise_result *out,
              struct cairn_error *err)
{
    struct run r = { .o = o, .a = a, .original = o->argv, .argv = o->argv, .env = o->env };
    const struct mismatch_view view = { .facts = o->facts, .planning = o->planning, .plan = &r.plan };
    if (o->plan)
        r.plan = *o->plan;
    actual_init(&r.actual, &view, o->journal, o->messages, o->calls, a);
    memory_monitor_init(&r.monitor, o->facts, o->plan ? o->plan->gpu : NULL);
    struct supervise_try *t;
    do {
        struct supervise_try made = { 0 };
        if (one_attempt(&r, &made, err))
            return -1;
        t = ARENA_PUSH(a, r.result.tries, r.result.n_tries);
        *t = made;
        r.trained |= made.attempt.saw_step;
        journal_verdict(&r, t);
        supervise_say_verdict(&r, t);
    } while (t->diagnosis.class_id && climb(&r, t));
    /* If cairn's own output went to a full disk, that must not look like success. */
    r.result.code = t->attempt.code == 0 && t->attempt.lost_output ? 1 : t->attempt.code;
    r.result.peak = r.monitor.peak;
    r.result.trainer = o->trainer ? o->trainer : resume_name(o->argv);
    r.result.torch = r.actual.torch;
    r.result.undone = r.actual.undone;
    r.result.n_undone = r.actual.n_undone;
    *out = r.result;
    return 0;
}
