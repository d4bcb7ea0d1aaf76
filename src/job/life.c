/* SPDX-License-Identifier: Apache-2.0
 * What a user asks of a job: start, stop, pause, resume, kill, abandon. */
#include "job/life.h"

#include "base/str.h"
#include "job/command.h"
#include "job/job_dir.h"
#include "job/queue.h"
#include "os/file.h"
#include "os/info.h"
#include "os/process.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum {
    ENDED = 1u << JOB_FINISHED | 1u << JOB_FAILED | 1u << JOB_STOPPED | 1u << JOB_LOST,
    WAITING = 1u << JOB_QUEUED | 1u << JOB_PAUSED,
};
enum { LOOK_MS = 20, LET_GO_MS = 1000 };

/* ---- resuming ---- */

/* Trainers name their folders relative to the working folder of the job. */
void life_find_resume(const struct job_row *row, struct arena *a, struct resume *out)
{
    struct job_command c;
    struct cairn_error ignored;
    CLEANUP(fd_close) int here = os_open(".", OS_PLACE | OS_FOLDER);
    *out = (struct resume){ .way = RESUME_UNKNOWN, .why = "nobody knows how this command resumes" };
    if (job_command_parse(row, a, &c, &ignored) || here < 0 || chdir(row->cwd))
        return;
    job_command_resume(&c, a, out);
    if (fchdir(here))
        out->way = RESUME_UNKNOWN;
}

bool queue_can_resume(const struct queue *q, const struct job_row *row, struct arena *a, const char **why)
{
    (void)q;
    struct resume r;
    if (row->kind == JOB_TRAIN) {
        bool has = row->run_dir && os_is_folder(arena_printf(a, "%s/checkpoints", row->run_dir));
        *why = has ? arena_printf(a, "from the newest checkpoint in %s", row->run_dir)
                   : "it has no checkpoint yet";
        return has;
    }
    if (row->kind == JOB_CACHE) {
        *why = "what is encoded already is skipped";
        return true;
    }
    if (row->kind == JOB_SAMPLE) {
        *why = "samples begin from the start";
        return false;
    }
    life_find_resume(row, a, &r);
    *why = r.why;
    return r.way != RESUME_UNKNOWN;
}

/* The list asks this of every job: a command of an unknown trainer must cost no look at files. */
static bool command_is_known(const struct job_row *row, struct arena *a)
{
    struct job_command c;
    struct cairn_error ignored;
    return !job_command_parse(row, a, &c, &ignored) && (c.resume_cmd || c.trainer || resume_trainer(c.argv));
}

bool queue_is_resumable(const struct job_row *row)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *why;
    if (row->adopted && (row->state == JOB_ACTIVE || (row->kind == JOB_RUN && !row->cwd)))
        return false;
    /* One that was paused before it began goes back to its place, whatever it is. */
    if (row->state == JOB_PAUSED || (row->kind == JOB_TRAIN && !job_state_has_ended(row->state)))
        return true;
    return (row->kind != JOB_RUN || command_is_known(row, &a)) && queue_can_resume(NULL, row, &a, &why);
}

/* ---- starting ---- */

static int refuse(const struct job_row *row, const char *what, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EUSAGE, "job %s is %s and cannot be %s", row->uid,
                      job_state_name(row->state), what);
}

/* A supervisor lets go of the lock just after it wrote how the job ended. */
static bool has_process(const struct queue *q, const struct job_row *row)
{
    for (int waited = 0; job_dir_is_held(q->o.state, row->uid); waited += LOOK_MS) {
        if (waited >= LET_GO_MS)
            return true;
        poll(NULL, 0, LOOK_MS);
    }
    return false;
}

static int enqueue(struct queue *q, const struct job_row *row, struct cairn_error *err)
{
    if (row->pid && has_process(q, row)) {
        cairn_fail(err, CAIRN_EUSAGE, "a process of job %s is left and does not end", row->uid);
        return cairn_hint(err,
                          "see `ps %lld`; a process in state D ends when its driver does, or at a reboot",
                          (long long)row->pid);
    }
    /* It may have been queued meanwhile. */
    return (row->pid && store_forget_process(q->store, row->uid, err)) ||
                   store_enqueue(q->store, row->uid, ENDED | 1u << JOB_DRAFT | 1u << JOB_PAUSED, NULL, err)
               ? -1
               : 0;
}

/* 1: it is queued or runs already. */
static int is_under_way(const struct job_row *row, struct cairn_error *err)
{
    if (job_state_is_running(row->state) && row->want != JOB_WANT_NOTHING) {
        cairn_fail(err, CAIRN_EUSAGE, "job %s was asked to %s and has not ended yet", row->uid,
                   job_want_name(row->want));
        return cairn_hint(err, "try again when it has; `cairn job show %s` says so", row->uid);
    }
    return job_state_is_running(row->state) || row->state == JOB_QUEUED;
}

int queue_start(struct queue *q, const char *uid, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    if (store_get(q->store, uid, &a, &row, err))
        return -1;
    int already = is_under_way(&row, err);
    return already ? (already < 0 ? -1 : 0) : enqueue(q, &row, err);
}

int queue_resume(struct queue *q, const char *uid, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    const char *why;
    if (store_get(q->store, uid, &a, &row, err))
        return -1;
    int already = is_under_way(&row, err);
    if (already)
        return already < 0 ? -1 : 0;
    if (row.state == JOB_DRAFT) {
        refuse(&row, "resumed, because it has not begun", err);
        return cairn_hint(err, "cairn job start %s", uid);
    }
    if (row.state != JOB_PAUSED && !queue_can_resume(q, &row, &a, &why)) {
        cairn_fail(err, CAIRN_EUSAGE, "job %s cannot be resumed: %s", uid, why);
        return cairn_hint(err, "`cairn job start %s` starts it from the beginning", uid);
    }
    return enqueue(q, &row, err);
}

/* ---- ending ---- */

/* 0 also if it has ended. */
static int signal_supervisor(const struct job_row *row, int sig, struct cairn_error *err)
{
    struct os_process_id id = { .pid = (pid_t)row->pid, .start = (uint64_t)row->pid_start };
    if (!row->pid)
        return 0; /* it sees the wish when it begins */
    snprintf(id.boot, sizeof(id.boot), "%s", row->boot_id ? row->boot_id : "");
    if (os_signal(&id, sig) && errno != ESRCH)
        return cairn_fail_errno(err, "signal process %lld, the supervisor of job %s", (long long)row->pid,
                                row->uid);
    return 0;
}

/* The wish first: the supervisor reads it when it ends. */
static int ask(struct queue *q, const struct job_row *row, enum job_want want, int sig,
               struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row now;
    if (store_set_want(q->store, row->uid, want, err) || store_get(q->store, row->uid, &a, &now, err))
        return -1;
    return job_dir_is_held(q->o.state, row->uid) ? signal_supervisor(&now, sig, err) : 0;
}

int queue_stop(struct queue *q, const char *uid, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    if (store_get(q->store, uid, &a, &row, err))
        return -1;
    bool changed = false;
    if (!job_state_is_running(row.state) &&
        store_set_state(q->store, uid, WAITING, JOB_STOPPED, &changed, err))
        return -1;
    /* It may have been claimed since it was read. */
    if (changed || row.state == JOB_DRAFT || job_state_has_ended(row.state))
        return 0;
    return ask(q, &row, JOB_WANT_STOP, SIGTERM, err);
}

int queue_pause(struct queue *q, const char *uid, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    const char *why;
    bool changed = false;
    if (store_get(q->store, uid, &a, &row, err) ||
        store_set_state(q->store, uid, 1u << JOB_QUEUED, JOB_PAUSED, &changed, err))
        return -1;
    if (changed || row.state == JOB_PAUSED)
        return 0;
    if (!job_state_is_running(row.state) && row.state != JOB_QUEUED)
        return refuse(&row, "paused", err);
    /* Native training saves when it is asked to, even before its first checkpoint. */
    if (row.kind != JOB_TRAIN && !queue_can_resume(q, &row, &a, &why)) {
        cairn_fail(err, CAIRN_EUSAGE, "job %s cannot be paused: %s", uid, why);
        return cairn_hint(err, "`cairn job stop %s` ends it", uid);
    }
    return ask(q, &row, JOB_WANT_PAUSE, SIGTERM, err);
}

/* The guardian ends the trainer when the supervisor is gone; the next look sets the row right. */
int queue_kill(struct queue *q, const char *uid, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    if (store_get(q->store, uid, &a, &row, err))
        return -1;
    return job_state_is_running(row.state) ? ask(q, &row, JOB_WANT_KILL, SIGKILL, err)
                                           : queue_stop(q, uid, err);
}

int queue_abandon(struct queue *q, const char *uid, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct job_row row;
    const struct store_end end = { .state = JOB_STOPPED,
                                   .cause = "abandoned: a process of it did not end",
                                   .keep_process = true };
    if (store_get(q->store, uid, &a, &row, err))
        return -1;
    if (!job_state_is_running(row.state))
        return 0;
    if (row.want == JOB_WANT_NOTHING) {
        refuse(&row, "abandoned before it was asked to stop", err);
        return cairn_hint(err, "cairn job stop %s", uid);
    }
    return store_set_end(q->store, uid, row.attempt, &end, NULL, err);
}
