/* SPDX-License-Identifier: Apache-2.0 */
#include "job/queue.h"

#include "base/str.h"
#include "job/job_dir.h"
#include "job/lanes.h"
#include "job/outcome.h"
#include "job/rebuild.h"
#include "job/sweep.h"
#include "os/file.h"
#include "os/path.h"
#include "os/process.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A supervisor takes its lock within milliseconds; on a machine that swaps, within seconds. */
enum { CLAIM_MS = 10000 };

/* A database that is missing is made from the folders of the jobs: one that runs must not look free. */
static int open_store(struct queue *q, struct cairn_error *err)
{
    struct rebuild_result found = { 0 };
    struct rebuild_source from = { .state = q->o.state, .arena = &q->arena, .result = &found };
    const struct store_options o = {
        .state = q->o.state, .busy_ms = q->o.busy_ms, .fill = rebuild_rows, .context = &from
    };
    if (store_open(&o, &q->arena, &q->store, &q->note, err))
        return -1;
    if (found.n_jobs || found.n_skipped)
        q->note = arena_printf(&q->arena,
                               "%s/cairn.db was missing; %zu jobs were read from their folders%s, and those "
                               "that waited are drafts now",
                               q->o.state, found.n_jobs,
                               found.n_skipped ? " (`cairn job rebuild` says which could not be)" : "");
    return 0;
}

int queue_open(const struct queue_options *o, struct queue *out, struct cairn_error *err)
{
    *out = (struct queue){ .o = *o };
    if (!open_store(out, err))
        return 0;
    arena_release(&out->arena);
    return -1;
}

int queue_refresh(struct queue *q, struct cairn_error *err)
{
    if (q->store && store_is_current(q->store))
        return 0;
    store_close(TAKE(q->store));
    return open_store(q, err);
}

void queue_close(struct queue *q)
{
    store_close(q->store);
    adopt_memory_release(&q->adopted);
    arena_release(&q->arena);
    *q = (struct queue){ 0 };
}

/* ---- settings ---- */

static const char paused_key[] = "queue.paused";

int queue_set_paused(struct queue *q, bool paused, struct cairn_error *err)
{
    return store_set_setting(q->store, paused_key, paused ? "true" : "false", err);
}

int queue_is_paused(struct queue *q, bool *paused, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *value;
    if (store_setting(q->store, paused_key, &a, &value, err))
        return -1;
    *paused = str_eq(value, "true");
    return 0;
}

static const char wait_key[] = "queue.wait_idle";

int queue_set_wait(struct queue *q, bool wait, struct cairn_error *err)
{
    return store_set_setting(q->store, wait_key, wait ? "true" : "false", err);
}

int queue_waits(struct queue *q, bool *wait, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *value;
    if (store_setting(q->store, wait_key, &a, &value, err))
        return -1;
    *wait = !str_eq(value, "false");
    return 0;
}

/* ---- healing ---- */

/* Nobody holds the lock of a job that should run. */
static int heal_running(struct queue *q, const struct job_row *row, struct arena *a, struct cairn_error *err)
{
    struct store_end end;
    int64_t waited = store_now_ms() - row->since_ms;
    if (row->state == JOB_STARTING && row->want == JOB_WANT_NOTHING) {
        /* It may not have come to its lock yet.  A clock that was set back must not keep it waiting. */
        if (!row->pid && waited >= 0 && waited < CLAIM_MS)
            return 0;
        if (row->claims < QUEUE_MOST_CLAIMS)
            return store_unclaim(q->store, row->uid, row->attempt, true, err);
        end = (struct store_end){ .state = JOB_FAILED,
                                  .cause = arena_printf(a, "its supervisor did not start, %d times in a row",
                                                        QUEUE_MOST_CLAIMS) };
    } else
        outcome_read(q->o.state, row, a, &end);
    return store_set_end(q->store, row->uid, row->attempt, &end, NULL, err);
}

static bool is_gone(const struct job_row *row)
{
    struct os_process_id id = { .pid = (pid_t)row->pid, .start = (uint64_t)row->pid_start };
    snprintf(id.boot, sizeof(id.boot), "%s", row->boot_id ? row->boot_id : "");
    return row->pid > 0 && os_signal(&id, 0) && errno == ESRCH;
}

/* Its lock says so; but a lock that somebody deleted says nothing, and processes that nobody guards do not end
 * by themselves. */
static bool has_process(const struct queue *q, const struct job_row *row)
{
    bool gone = is_gone(row), held = job_dir_is_held(q->o.state, row->uid);
    if (gone && (held || job_state_is_running(row->state)))
        return sweep(q->o.state, row->uid) || job_dir_is_held(q->o.state, row->uid);
    return held ||
           (job_state_is_running(row->state) && row->pid && !gone && !job_dir_has_lock(q->o.state, row->uid));
}

int queue_heal(struct queue *q, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row *rows;
    size_t n;
    if (queue_refresh(q, err))
        return -1;
    if (store_is_read_only(q->store))
        return 0;
    if (store_unsettled(q->store, &a, &rows, &n, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (has_process(q, &rows[i]))
            continue;
        if (job_state_is_running(rows[i].state) ? heal_running(q, &rows[i], &a, err)
                                                : store_forget_process(q->store, rows[i].uid, err))
            return -1;
    }
    return 0;
}

/* ---- starting ---- */

struct choice {
    const struct facts *facts;
    struct arena *arena;
};

static const char *choose(void *context, const struct job_row *job, const char *const *taken, size_t n)
{
    const struct choice *c = context;
    return lanes_choose(job->gpu, c->facts, taken, n, c->arena);
}

/* Where the supervisor of a job writes. */
static int open_log(const struct queue *q, const struct job_row *row, int *log, struct cairn_error *err)
{
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    return job_dir_open(q->o.state, row->uid, true, &d, err) ||
                   own_file_open(&d, "supervisor.log", OS_APPEND | OS_CREATE, log, err)
               ? -1
               : 0;
}

/* The supervisor is this program, apart from the caller's session. */
static int start_supervisor(const struct queue *q, const struct job_row *row, int log,
                            struct cairn_error *err)
{
    CLEANUP(fd_close) int null = os_open_null();
    char program[PATH_MAX];
    const char *argv[] = { "cairn", "job", "exec", row->uid, q->o.root ? "--root" : NULL, q->o.root, NULL };
    if (null < 0)
        return cairn_fail_errno(err, "open /dev/null");
    if (path_program_to_start(program, sizeof(program)))
        return cairn_fail_errno(err, "find this program");
    if (os_spawn_apart(program, argv, (const int[]){ null, log, log }))
        return cairn_fail_errno(err, "start the supervisor of job %s", row->uid);
    return 0;
}

/* Not that of a machine without room, memory or files, on which the next job would fare no better. */
static bool is_fault_of_folder(int error)
{
    return error == EISDIR || error == ENOTDIR || error == EPERM || error == EACCES || error == ELOOP;
}

/* A job with a folder that cannot be used must not keep the others waiting.  If its supervisor cannot be started,
 * all of them wait. */
static int start_or_fail(struct queue *q, const struct job_row *row, struct cairn_error *err)
{
    CLEANUP(fd_close) int log = -1;
    struct cairn_error why = { 0 }, ignored;
    errno = 0;
    int r = open_log(q, row, &log, &why);
    if (r && is_fault_of_folder(errno)) {
        const struct store_end end = { .state = JOB_FAILED, .cause = why.msg };
        return store_set_end(q->store, row->uid, row->attempt, &end, NULL, err);
    }
    if (!r && !start_supervisor(q, row, log, &why))
        return 0;
    store_unclaim(q->store, row->uid, row->attempt, false, &ignored);
    *err = why;
    return -1;
}

int queue_advance(struct queue *q, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct choice choice = { .facts = q->o.facts, .arena = &a };
    const struct store_lanes lanes = { .choose = choose, .context = &choice };
    struct job_row row;
    bool paused, found;
    if (store_is_read_only(q->store))
        return 0;
    do {
        if (queue_is_paused(q, &paused, err))
            return -1;
        if (paused)
            return 0;
        if (store_claim(q->store, &lanes, &a, &row, &found, err) || (found && start_or_fail(q, &row, err)))
            return -1;
    } while (found);
    return 0;
}
