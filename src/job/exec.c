/* SPDX-License-Identifier: Apache-2.0 */
#include "job/exec.h"

#include "base/str.h"
#include "job/command.h"
#include "job/job_dir.h"
#include "job/outcome.h"
#include "job/queue.h"
#include "job/store_inside.h"
#include "os/path.h"
#include "os/process.h"
#include "run/run_job.h"
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 1000, DEFAULT_RETRIES = 2, DEFAULT_HANG_S = 600 };

struct execution {
    const struct job_exec_options *o;
    struct queue queue;
    struct job_row row;
    struct job_command command;
    struct own_dir dir;
    int lock;
    char **environment; /* of this process before it entered the job's */
    struct arena arena;
};

/* ---- before the trainer starts ---- */

static int read_machine(const struct execution *x, char *const *argv, struct facts *out,
                        struct cairn_error *err)
{
    const struct facts_options fo = {
        .root = x->o->root,
        .command = (const char *const *)argv,
        .env = (const char *const *)environ,
        .parts = FACTS_ALL,
    };
    return facts_read(out, &fo, err);
}

/* The row of this process's claim; *mine is false if there is none. */
static int take_over(struct execution *x, bool *mine, struct cairn_error *err)
{
    struct os_process_id me;
    const char *uid = x->o->uid;
    *mine = false;
    if (job_dir_open(x->o->state, uid, true, &x->dir, err) || job_dir_hold(&x->dir, &x->lock, err))
        return -1;
    if (x->lock < 0)
        return 0; /* another supervisor is at work */
    if (store_get(x->queue.store, uid, &x->arena, &x->row, err))
        return -1;
    if (!os_process_id(getpid(), &me))
        return cairn_fail(err, CAIRN_EIO, "cannot read /proc/self/stat");
    return store_set_process(x->queue.store, uid, x->row.attempt, &me, mine, err);
}

/* The next supervisor must not inherit the environment of this job. */
static void keep_environment(struct execution *x)
{
    size_t n = 0;
    for (char **v = environ; *v; v++)
        *ARENA_PUSH(&x->arena, x->environment, n) = arena_strdup(&x->arena, *v);
    *ARENA_PUSH(&x->arena, x->environment, n) = NULL;
}

/* Enters the folder and the environment of the job. */
static int enter(struct execution *x, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *env = NULL;
    if (job_command_parse(&x->row, &x->arena, &x->command, err))
        return -1;
    if (chdir(x->row.cwd)) {
        cairn_fail_errno(err, "enter the job's folder %s", x->row.cwd);
        return cairn_hint(err, "make it again, or edit the job");
    }
    if (json_parse(x->row.env, strlen(x->row.env), &env, err))
        return cairn_wrap(err, "the environment of job %s", x->row.uid);
    for (struct json_member m = json_first(env); m.key; m = json_next(env, m))
        if (json_text(m.value))
            setenv(m.key, json_text(m.value), 1);
        else
            unsetenv(m.key);
    setenv("PWD", x->row.cwd, 1);
    return 0;
}

/* A process on one of the job's GPUs that is none of this machine's own programs; NULL: none. */
static const char *stranger(struct execution *x, const struct facts *f)
{
    char index[16];
    for (size_t i = 0; i < f->n_gpus; i++) {
        const struct gpu_facts *g = &f->gpus[i];
        snprintf(index, sizeof(index), "%d", g->hip_index);
        if (!str_list_has(x->row.gpu_used, ',', index))
            continue;
        for (size_t k = 0; k < g->n_processes; k++)
            return arena_printf(&x->arena, "waiting for GPU %s, which %s (pid %lld) uses", index,
                                g->processes[k].name ? g->processes[k].name : "a process",
                                (long long)g->processes[k].pid);
    }
    return NULL;
}

static bool wait_is_on(struct execution *x)
{
    const char *value;
    struct cairn_error ignored;
    return store_setting(x->queue.store, "queue.wait_idle", &x->arena, &value, &ignored) ||
           !str_eq(value, "false");
}

/* What the user wants now; a job that was withdrawn wants to stop. */
static enum job_want wanted(struct execution *x)
{
    struct job_row now;
    struct cairn_error ignored;
    return store_get(x->queue.store, x->row.uid, &x->arena, &now, &ignored) ? JOB_WANT_STOP : now.want;
}

/* Until no stranger uses the GPU.  False: the user wants something else. */
static bool wait_for_gpu(struct execution *x)
{
    const char *said = NULL;
    struct cairn_error ignored;
    while (wait_is_on(x)) {
        CLEANUP(facts_release) struct facts f;
        if (read_machine(x, NULL, &f, &ignored))
            return true;
        const char *who = stranger(x, &f);
        if (!who)
            break;
        if (!str_eq(who, said)) {
            store_set_cause(x->queue.store, x->row.uid, who, &ignored);
            message_say(x->o->messages, "%s", who);
            said = who;
        }
        if (wanted(x) != JOB_WANT_NOTHING)
            return false;
        poll(NULL, 0, LOOK_MS);
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

static void describe(const struct execution *x, struct run_job_options *o)
{
    const struct job_command *c = &x->command;
    bool native = x->row.kind != JOB_RUN;
    o->gpu = native || strchr(x->row.gpu_used, ',') || !strspn(x->row.gpu_used, "0123456789")
                 ? -1
                 : atoi(x->row.gpu_used);
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
    o->stop_grace_s = job_kind_grace_s(x->row.kind);
}

static int train(struct execution *x, struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir journal = OWN_DIR_NONE;
    CLEANUP(facts_release) struct facts f = { .root.fd = -1 };
    char program[PATH_MAX];
    int code;
    const char *config = arena_printf(&x->arena, "%s/%s", x->dir.path, job_dir_config_name(&x->row));
    if (path_program(program, sizeof(program)))
        return cairn_fail_errno(err, "find this program");
    if (own_dir_make(&journal, &x->dir, arena_printf(&x->arena, "attempt-%lld", (long long)x->row.attempt),
                     err))
        return -1;
    static const char *const no_gpu[] = { "HIP_VISIBLE_DEVICES=-1", NULL };
    struct run_job_options o = {
        .argv = job_command_line(&x->row, &x->command, program, config, device_of(x), &x->arena),
        .journal = &journal,
        .lock = x->lock,
        .silent = true,
        .with = str_eq(x->row.gpu, "cpu") && x->row.kind == JOB_RUN ? no_gpu : NULL,
        .parent = -1,
        .messages = x->o->messages,
        .describe_machine = x->o->describe_machine,
    };
    describe(x, &o);
    return read_machine(x, o.argv, &f, err) || run_job(&o, &f, &code, err) ? -1 : 0;
}

/* ---- the whole ---- */

/* What a failure before or beside the trainer leaves in the row. */
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
    if (store_set_end(x->queue.store, x->row.uid, x->row.attempt, &end, NULL, &err))
        message_error(x->o->messages, &err);
}

/* The wish may have come while the trainer ran. */
static void read_wish(struct execution *x)
{
    x->row.want = wanted(x);
}

static void run_attempt(struct execution *x)
{
    struct cairn_error why = { 0 };
    bool active = false;
    if (!enter(x, &why) && wait_for_gpu(x) &&
        !store_set_active(x->queue.store, x->row.uid, x->row.attempt, &active, &why) && active)
        train(x, &why);
    read_wish(x);
    end_with(x, &why);
}

static int execute(struct execution *x, struct cairn_error *err)
{
    CLEANUP(facts_release) struct facts f = { .root.fd = -1 };
    bool mine;
    if (read_machine(x, NULL, &f, err))
        return -1;
    const struct queue_options qo = { .state = x->o->state, .root = x->o->root, .facts = &f };
    if (queue_open(&qo, &x->queue, err) || take_over(x, &mine, err))
        return -1;
    if (!mine)
        return 0;
    keep_environment(x);
    run_attempt(x);
    environ = x->environment;
    fd_close(&x->lock); /* it may be started again at once */
    x->lock = -1;
    return queue_heal(&x->queue, err) || queue_advance(&x->queue, err) ? -1 : 0;
}

int job_exec(const struct job_exec_options *o, struct cairn_error *err)
{
    struct execution x = { .o = o, .dir = OWN_DIR_NONE, .lock = -1 };
    int r = execute(&x, err);
    queue_close(&x.queue);
    own_dir_close(&x.dir);
    fd_close(&x.lock);
    arena_release(&x.arena);
    return r;
}
