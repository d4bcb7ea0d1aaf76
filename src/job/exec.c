/* SPDX-License-Identifier: Apache-2.0 */
#include "job/exec.h"

#include "base/parse.h"
#include "base/str.h"
#include "job/command.h"
#include "job/environment.h"
#include "job/job_dir.h"
#include "job/outcome.h"
#include "job/queue.h"
#include "job/sweep.h"
#include "os/path.h"
#include "os/process.h"
#include "run/run_job.h"
#include "run/signals.h"
#include "run/tree.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 1000, BUSY_MS = 600000, DEFAULT_RETRIES = 2, DEFAULT_HANG_S = 600 };

struct execution {
    const struct job_exec_options *o;
    struct facts facts;
    struct queue queue;
    struct job_row row;
    struct job_command command;
    struct own_dir dir;
    struct signals signals;
    int lock;
    bool told; /* a signal came that no wish of the user explains: a shutdown, or a kill */
    struct arena arena;
};

/* ---- before the trainer starts ---- */

static int read_machine(const struct execution *x, char *const *argv, unsigned parts, struct facts *out,
                        struct cairn_error *err)
{
    const struct facts_options fo = {
        .root = x->o->root,
        .command = (const char *const *)argv,
        .env = (const char *const *)environ,
        .parts = parts,
    };
    return facts_read(out, &fo, err);
}

/* It waits for a locked database much longer than a user would: nobody else moves the queue on. */
static int open_queue(struct execution *x, struct cairn_error *err)
{
    const struct queue_options o = {
        .state = x->o->state, .root = x->o->root, .facts = &x->facts, .busy_ms = BUSY_MS
    };
    return queue_open(&o, &x->queue, err);
}

/* The row of this process's claim; *mine is false if there is none. */
static int take_over(struct execution *x, bool *mine, struct cairn_error *err)
{
    struct os_process_id me;
    struct job_row *row = &x->row;
    const char *uid = x->o->uid;
    *mine = false;
    if (store_get(x->queue.store, uid, &x->arena, row, err) ||
        job_dir_open(x->o->state, uid, true, &x->dir, err) || job_dir_hold(&x->dir, &x->lock, err))
        return -1;
    if (x->lock < 0)
        return 0; /* another supervisor is at work */
    if (store_get(x->queue.store, uid, &x->arena, row, err))
        return -1;
    if (!os_process_id(getpid(), &me))
        return cairn_fail(err, CAIRN_EIO, "cannot read /proc/self/stat");
    if (store_set_process(x->queue.store, row->uid, row->attempt, &me, mine, err))
        return -1;
    row->pid = me.pid;
    row->pid_start = (int64_t)me.start;
    row->boot_id = arena_strdup(&x->arena, me.boot);
    if (*mine)
        job_dir_tell(x->lock, row);
    return 0;
}

/* The working folder and the variables of the job. */
static int enter(struct execution *x, struct cairn_error *err)
{
    const struct job_row *row = &x->row;
    char **variables;
    if (job_command_parse(row, &x->arena, &x->command, err) ||
        environment_make(row->env, (const char *const *)environ, row->cwd, &x->arena, &variables, err))
        return -1;
    if (chdir(row->cwd)) {
        cairn_fail_errno(err, "enter the job's folder %s", row->cwd);
        return cairn_hint(err, "make it again, or add the job anew elsewhere");
    }
    environ = variables;
    return 0;
}

/* A program that uses the GPU and is no job, each of which has a GPU of its own even if its runtime keeps a little
 * memory on all.  NULL: none. */
static const struct gpu_process *stranger_on(const struct execution *x, const struct gpu_facts *g)
{
    for (size_t i = 0; i < g->n_processes; i++)
        if (x->o->root || !sweep_is_of_job((pid_t)g->processes[i].pid, "/jobs/"))
            return &g->processes[i];
    return NULL;
}

/* Whether there is one on the job's GPUs, in a sentence. */
static bool has_stranger(const struct execution *x, const struct facts *f, char *text, size_t size)
{
    char index[16];
    for (size_t i = 0; i < f->n_gpus; i++) {
        snprintf(index, sizeof(index), "%d", f->gpus[i].hip_index);
        const struct gpu_process *p =
            str_list_has(x->row.gpu_used, ',', index) ? stranger_on(x, &f->gpus[i]) : NULL;
        if (!p)
            continue;
        snprintf(text, size, "waiting for GPU %s, which %s (pid %lld) uses", index,
                 p->name ? p->name : "a process", (long long)p->pid);
        return true;
    }
    return false;
}

/* What the user wants now; a job that was withdrawn wants to stop. */
static enum job_want wanted(struct execution *x)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row now;
    struct cairn_error ignored;
    if (queue_refresh(&x->queue, &ignored))
        return JOB_WANT_NOTHING;
    return store_get(x->queue.store, x->row.uid, &a, &now, &ignored) ? JOB_WANT_STOP : now.want;
}

/* A second at most.  True: something was asked of this process. */
static bool rest(struct execution *x)
{
    struct pollfd p = { x->signals.fd, POLLIN, 0 };
    poll(&p, 1, LOOK_MS);
    int sig = signals_read(&x->signals);
    x->row.want = wanted(x);
    x->told = x->row.want == JOB_WANT_NOTHING &&
              (sig == SIGTERM || sig == SIGINT || sig == SIGHUP || sig == SIGQUIT);
    return x->told || x->row.want != JOB_WANT_NOTHING;
}

static bool wait_is_on(struct execution *x)
{
    bool on = true;
    struct cairn_error ignored;
    return queue_waits(&x->queue, &on, &ignored) || on;
}

/* Until no stranger uses the GPU.  False: the user wants something else. */
static bool wait_for_gpu(struct execution *x)
{
    char who[160], said[160] = "";
    struct cairn_error ignored;
    while (wait_is_on(x)) {
        CLEANUP(facts_release) struct facts f = { .root.fd = -1 };
        if (read_machine(x, NULL, FACTS_HARDWARE, &f, &ignored) || !has_stranger(x, &f, who, sizeof(who)))
            return true;
        if (strcmp(who, said) != 0) {
            store_set_cause(x->queue.store, x->row.uid, who, &ignored);
            message_say(x->o->messages, "%s", who);
            memcpy(said, who, sizeof(said));
        }
        if (rest(x))
            return false;
    }
    return true;
}

/* ---- the trainer ---- */

/* "hip:0", "cpu"; NULL: `cairn train` chooses.  A captured machine has no devices. */
static const char *device_of(struct execution *x)
{
    if (str_eq(x->row.gpu, "cpu"))
        return "cpu";
    return x->o->root || str_eq(x->row.gpu_used, "cpu") ? NULL
                                                        : arena_printf(&x->arena, "hip:%s", x->row.gpu_used);
}

/* Which GPUs another trainer sees, where --gpu of `cairn run` does not say so. */
static const char *const *visible_gpus(struct execution *x)
{
    const char **with = ARENA_NEW(&x->arena, const char *, 2);
    const char *used = x->row.gpu_used;
    if (str_eq(x->row.gpu, "cpu"))
        with[0] = "HIP_VISIBLE_DEVICES=-1";
    else if (!str_eq(used, "cpu") && (strchr(used, ',') || x->command.no_env))
        with[0] = arena_printf(&x->arena, "ROCR_VISIBLE_DEVICES=%s", used);
    else
        return NULL;
    with[1] = NULL;
    return with;
}

static void describe(struct execution *x, struct run_job_options *o)
{
    const struct job_command *c = &x->command;
    bool native = x->row.kind != JOB_RUN;
    uint64_t gpu;
    o->gpu = !native && cairn_parse_u64(x->row.gpu_used, &gpu) ? (int)gpu : -1;
    o->with = native ? NULL : visible_gpus(x);
    o->trainer = c->trainer;
    o->resume_cmd = c->resume_cmd;
    /* `cairn train` handles faults of its device itself. */
    o->retries = native ? 0 : c->retries >= 0 ? c->retries : DEFAULT_RETRIES;
    o->hang_after_s = c->hang_after_s >= 0 ? c->hang_after_s : DEFAULT_HANG_S;
    o->hang_explicit = c->hang_after_s >= 0;
    o->no_env = c->no_env || native;
    o->no_preflight = c->no_preflight || native;
    o->allow_cpu = c->allow_cpu;
    o->debug = c->debug;
    o->with_smi = c->with_smi;
    o->preload.way = o->no_env ? PRELOAD_OFF : PRELOAD_AUTO;
    o->stop_grace_s = c->grace_s;
}

/* A command that ran before goes on where it can; native training is told so on its command line. */
static char **command_line(struct execution *x, struct cairn_error *err)
{
    char program[PATH_MAX];
    struct resume r = { 0 };
    if (x->row.kind == JOB_RUN && job_dir_last_attempt(x->o->state, x->row.uid) > 0)
        job_command_resume(&x->command, &x->arena, &r);
    if (r.way == RESUME_STATE || r.way == RESUME_COMMAND) {
        message_say(x->o->messages, "%s", r.why);
        return (char **)r.argv;
    }
    if (path_program_to_start(program, sizeof(program))) {
        cairn_fail_errno(err, "find this program");
        return NULL;
    }
    const char *config = arena_printf(&x->arena, "%s/%s", x->dir.path, job_dir_config_name(&x->row));
    return job_command_line(&x->row, &x->command, program, config, device_of(x), &x->arena);
}

static int train(struct execution *x, struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir journal = OWN_DIR_NONE;
    CLEANUP(facts_release) struct facts f = { .root.fd = -1 };
    int code;
    struct run_job_options o = {
        .argv = command_line(x, err),
        .journal = &journal,
        .signals = &x->signals,
        .lock = x->lock,
        .silent = true,
        .parent = -1,
        .messages = x->o->messages,
        .describe_machine = x->o->describe_machine,
    };
    if (!o.argv || own_dir_make(&journal, &x->dir,
                                arena_printf(&x->arena, "attempt-%lld", (long long)x->row.attempt), err))
        return -1;
    describe(x, &o);
    return read_machine(x, o.argv, FACTS_ALL, &f, err) || run_job(&o, &f, &code, err) ? -1 : 0;
}

/* ---- the whole ---- */

/* How it ended, by its files; or why it did not begin.  The process stays in the row until its lock is free. */
static void end_with(struct execution *x, const struct cairn_error *why)
{
    struct cairn_error err = { 0 };
    struct store_end end;
    outcome_read(x->o->state, &x->row, &x->arena, &end);
    if (why->code) {
        end.state = JOB_FAILED;
        end.cause = arena_printf(&x->arena, "%s%s%s", why->msg, why->hint[0] ? "; " : "", why->hint);
        message_error(x->o->messages, why);
    }
    end.keep_process = true;
    x->told = end.state == JOB_STOPPED && x->row.want == JOB_WANT_NOTHING;
    if (store_set_end(x->queue.store, x->row.uid, x->row.attempt, &end, NULL, &err))
        message_error(x->o->messages, &err);
}

/* The database is closed while the trainer runs: it may be removed, replaced or on a disk that goes away. */
static int train_alone(struct execution *x, struct cairn_error *why, struct cairn_error *err)
{
    queue_close(&x->queue);
    train(x, why);
    return open_queue(x, err);
}

/* A full disk is no fault of the job, and the next one would fare no better: both wait until somebody looks. */
static int put_off(struct execution *x, const struct cairn_error *why, struct cairn_error *err)
{
    message_error(x->o->messages, why);
    x->told = true;
    return store_unclaim(x->queue.store, x->row.uid, x->row.attempt, true, err) ||
                   store_set_cause(x->queue.store, x->row.uid, why->msg, err)
               ? -1
               : 0;
}

static int run_attempt(struct execution *x, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    bool active = false;
    /* Its files as the row has them: somebody may have removed or changed them. */
    if (job_dir_write(x->o->state, &x->row, &why) && x->row.claims < QUEUE_MOST_CLAIMS)
        return put_off(x, &why, err);
    if (!why.code && !enter(x, &why)) {
        bool ready = wait_for_gpu(x);
        if (x->told) /* it has not begun, and may do so another time */
            return store_unclaim(x->queue.store, x->row.uid, x->row.attempt, false, err);
        if (ready && !store_set_active(x->queue.store, x->row.uid, x->row.attempt, &active, &why) && active &&
            train_alone(x, &why, err))
            return -1;
    }
    x->row.want = wanted(x); /* it may have come while the trainer ran */
    end_with(x, &why);
    return 0;
}

/* Nobody should start the next job while the machine shuts down. */
static int hand_over(struct execution *x, struct cairn_error *err)
{
    fd_close(&x->lock); /* it may be started again at once */
    x->lock = -1;
    return queue_heal(&x->queue, err) || (!x->told && queue_advance(&x->queue, err)) ? -1 : 0;
}

static int execute(struct execution *x, struct cairn_error *err)
{
    bool mine;
    char **own = environ; /* the next supervisor must not get the variables of this job */
    if (read_machine(x, NULL, FACTS_HARDWARE, &x->facts, err) || open_queue(x, err) ||
        take_over(x, &mine, err))
        return -1;
    int r = mine ? run_attempt(x, err) : 0;
    environ = own;
    return r || hand_over(x, err) ? -1 : 0;
}

int job_exec(const struct job_exec_options *o, struct cairn_error *err)
{
    struct execution x = { .o = o, .facts.root.fd = -1, .dir = OWN_DIR_NONE, .signals.fd = -1, .lock = -1 };
    os_set_name(TREE_APART);
    int r = signals_open(&x.signals, run_job_signals, RUN_JOB_N_SIGNALS, err) || execute(&x, err) ? -1 : 0;
    queue_close(&x.queue);
    signals_close(&x.signals);
    facts_release(&x.facts);
    own_dir_close(&x.dir);
    fd_close(&x.lock);
    arena_release(&x.arena);
    return r;
}
