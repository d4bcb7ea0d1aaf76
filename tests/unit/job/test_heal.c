/* SPDX-License-Identifier: Apache-2.0
 * What queue_heal makes of a row, by its lock and its files. */
#include "job/queue.h"

#include "base/own.h"
#include "job/job_dir.h"
#include "os/process.h"
#include "store_test.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static struct cairn_error err;
static const struct facts no_gpus = { .default_gpu = -1, .root.fd = -1 };

enum lock { FREE, HELD, MISSING };
enum process { NONE, GONE, ALIVE }; /* what pid, start and boot of the row name */

/* verdict.json of an attempt, and what native training left. */
#define ENDED(code, end) "{\"code\":" #code ",\"attempts\":[{\"end\":\"" end "\",\"code\":" #code "}]}"
static const char finished[] = ENDED(0, "ended"), failed[] = ENDED(3, "ended"), hung[] = ENDED(124, "hung"),
                  interrupted[] = ENDED(130, "interrupted");

struct heal_case {
    const char *title;
    enum job_state state;
    enum job_want want;
    int claims, ago_s;
    enum process process;
    enum lock lock;
    const char *verdict;  /* NULL: none */
    const char *training; /* the state in run.json of native training; NULL: none */
    enum job_state after;
    bool keeps_pid;
};

static const struct heal_case cases[] = {
    /* title, state, want, claims, ago, process, lock, verdict, training, after, pid stays */
    { "runs", JOB_ACTIVE, 0, 0, 0, ALIVE, HELD, NULL, NULL, JOB_ACTIVE, true },
    { "its row names a dead process", JOB_ACTIVE, 0, 0, 0, NONE, HELD, NULL, NULL, JOB_ACTIVE, false },
    { "it finished", JOB_ACTIVE, 0, 0, 0, GONE, FREE, finished, NULL, JOB_FINISHED, false },
    { "it failed", JOB_ACTIVE, 0, 0, 0, GONE, FREE, failed, NULL, JOB_FAILED, false },
    { "it hung", JOB_ACTIVE, 0, 0, 0, GONE, FREE, hung, NULL, JOB_FAILED, false },
    { "it was interrupted", JOB_ACTIVE, 0, 0, 0, GONE, FREE, interrupted, NULL, JOB_STOPPED, false },
    { "it was paused", JOB_ACTIVE, JOB_WANT_PAUSE, 0, 0, GONE, FREE, interrupted, NULL, JOB_PAUSED, false },
    { "stopped as it finished", JOB_ACTIVE, JOB_WANT_STOP, 0, 0, GONE, FREE, finished, NULL, JOB_FINISHED,
      false },
    { "no word", JOB_ACTIVE, 0, 0, 0, GONE, FREE, NULL, NULL, JOB_LOST, false },
    { "a word cut short", JOB_ACTIVE, 0, 0, 0, GONE, FREE, "{\"code\":", NULL, JOB_LOST, false },
    { "killed by the user", JOB_ACTIVE, JOB_WANT_KILL, 0, 0, GONE, FREE, NULL, NULL, JOB_STOPPED, false },
    { "stopped, then lost", JOB_ACTIVE, JOB_WANT_STOP, 0, 0, GONE, FREE, NULL, NULL, JOB_STOPPED, false },
    { "paused, then lost", JOB_ACTIVE, JOB_WANT_PAUSE, 0, 0, GONE, FREE, NULL, NULL, JOB_PAUSED, false },
    { "training finished, no verdict", JOB_ACTIVE, 0, 0, 0, GONE, FREE, NULL, "finished", JOB_FINISHED,
      false },
    { "training stopped", JOB_ACTIVE, JOB_WANT_STOP, 0, 0, GONE, FREE, failed, "stopped", JOB_STOPPED,
      false },
    { "training in the middle", JOB_ACTIVE, 0, 0, 0, GONE, FREE, NULL, "running", JOB_LOST, false },
    { "its lock was deleted", JOB_ACTIVE, 0, 0, 0, ALIVE, MISSING, NULL, NULL, JOB_ACTIVE, true },
    { "its folder and process are gone", JOB_ACTIVE, 0, 0, 0, GONE, MISSING, NULL, NULL, JOB_LOST, false },
    { "claimed just now", JOB_STARTING, 0, 1, 3, NONE, MISSING, NULL, NULL, JOB_STARTING, false },
    { "claimed in vain", JOB_STARTING, 0, 1, 11, NONE, MISSING, NULL, NULL, JOB_QUEUED, false },
    { "claimed in the future", JOB_STARTING, 0, 1, -3600, NONE, FREE, NULL, NULL, JOB_QUEUED, false },
    { "claimed three times", JOB_STARTING, 0, 3, 11, NONE, FREE, NULL, NULL, JOB_FAILED, false },
    { "its supervisor died at once", JOB_STARTING, 0, 1, 0, GONE, FREE, NULL, NULL, JOB_QUEUED, false },
    { "and a third time", JOB_STARTING, 0, 3, 0, GONE, FREE, NULL, NULL, JOB_FAILED, false },
    { "waits for a GPU", JOB_STARTING, 0, 1, 99, ALIVE, HELD, NULL, NULL, JOB_STARTING, true },
    { "stopped before it began", JOB_STARTING, JOB_WANT_STOP, 1, 0, NONE, MISSING, NULL, NULL, JOB_STOPPED,
      false },
    { "paused before it began", JOB_STARTING, JOB_WANT_PAUSE, 1, 0, NONE, FREE, NULL, NULL, JOB_PAUSED,
      false },
    { "ended, process left", JOB_STOPPED, 0, 0, 0, ALIVE, HELD, NULL, NULL, JOB_STOPPED, true },
    { "ended, process gone", JOB_STOPPED, 0, 0, 0, GONE, FREE, NULL, NULL, JOB_STOPPED, false },
    { "ended, supervisor lives on", JOB_FINISHED, 0, 0, 0, ALIVE, FREE, NULL, NULL, JOB_FINISHED, false },
    { "waits", JOB_QUEUED, 0, 0, 99, NONE, MISSING, NULL, NULL, JOB_QUEUED, false },
};

static const char *write_training(const char *state, const char *how)
{
    char name[128];
    snprintf(name, sizeof(name), "%s/run/run.json", state + strlen(scratch_dir) + 1);
    scratch_file(name, arena_printf(&store_arena, "{\"schema\":1,\"state\":\"%s\",\"steps\":9}", how));
    return arena_printf(&store_arena, "%s/run", state);
}

static void write_files(const char *state, const struct job_row *row, const struct heal_case *c)
{
    const char *below = state + strlen(scratch_dir) + 1;
    const char *journal = arena_printf(&store_arena, "%s/jobs/%s/attempt-1", below, row->uid);
    if (job_dir_write(state, row, &err))
        CHECK_FAIL_("%s", err.msg);
    if (c->verdict)
        scratch_file(arena_printf(&store_arena, "%s/verdict.json", journal), c->verdict);
    if (c->training)
        scratch_file(arena_printf(&store_arena, "%s/training", journal),
                     arena_printf(&store_arena, "%s\n", write_training(state, c->training)));
    if (c->lock != MISSING)
        scratch_file(arena_printf(&store_arena, "%s/jobs/%s/lock", below, row->uid), "");
}

static void set_process(const char *state, const struct heal_case *c)
{
    struct os_process_id me;
    REQUIRE(os_process_id(getpid(), &me));
    change(state,
           arena_printf(&store_arena,
                        "UPDATE job SET want = %s%s%s, claims = %d, since = %lld, pid = %d, pid_start = %llu,"
                        " boot_id = '%s', attempt = 1, gpu_used = 'cpu'",
                        c->want ? "'" : "", c->want ? job_want_name(c->want) : "NULL", c->want ? "'" : "",
                        c->claims, (long long)(store_now_ms() - c->ago_s * 1000LL), (int)me.pid,
                        (unsigned long long)me.start, c->process == GONE ? "another" : me.boot));
    if (c->process == NONE)
        change(state, "UPDATE job SET pid = NULL");
}

static void heal_one(size_t i)
{
    const struct heal_case *c = &cases[i];
    const char *state = new_state(arena_printf(&store_arena, "heal-%zu", i));
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(queue_close) struct queue q = { 0 };
    CLEANUP(fd_close) int lock = -1;
    struct job_row row = row_named('a', c->state);
    const struct queue_options o = { .state = state, .facts = &no_gpus };
    row.kind = c->training ? JOB_TRAIN : JOB_RUN;
    write_files(state, &row, c);
    REQUIRE(!queue_open(&o, &q, &err)); /* fills itself from the folder */
    change(state, "DELETE FROM job");
    REQUIRE(!store_add(q.store, &row, &err));
    set_process(state, c);
    if (c->lock == HELD)
        REQUIRE(!job_dir_open(state, row.uid, false, &d, &err) && !job_dir_hold(&d, &lock, &err) &&
                lock >= 0);
    for (int twice = 0; twice < 2; twice++) {
        struct job_row now;
        REQUIRE(!queue_heal(&q, &err));
        now = get_row(q.store, 'a');
        if (now.state != c->after || (now.pid != 0) != c->keeps_pid)
            CHECK_FAIL_("%s: %s with pid %d, want %s", c->title, job_state_name(now.state), (int)now.pid,
                        job_state_name(c->after));
        if ((now.state == JOB_LOST || now.state == JOB_FAILED) && !now.cause)
            CHECK_FAIL_("%s: no cause", c->title);
    }
}

static void rows_are_set_right(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        heal_one(i);
}

/* A child that holds the lock, or that has CAIRN_RUN; it is none of cairn's programs. */
static pid_t leave_behind(const struct own_dir *d, const char *journal)
{
    int lock = -1;
    pid_t pid = fork();
    if (pid)
        return pid;
    if (d && (job_dir_hold(d, &lock, &err) || lock < 0))
        _exit(9);
    if (journal) {
        char *const argv[] = { (char *)"sleep", (char *)"600", NULL };
        char *const env[] = { arena_printf(&store_arena, "CAIRN_RUN=%s", journal), NULL };
        execve("/bin/sleep", argv, env);
    }
    sleep(600);
    _exit(0);
}

static bool has_ended(pid_t pid, int *status)
{
    for (int i = 0; i < 100; i++) {
        if (waitpid(pid, status, WNOHANG) == pid)
            return true;
        usleep(10000);
    }
    return false;
}

static void what_is_left_is_ended_first(void)
{
    static const struct heal_case lost = { .state = JOB_ACTIVE, .process = GONE, .lock = FREE };
    const char *state = new_state("left");
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(queue_close) struct queue q = { 0 };
    struct job_row row = row_named('a', JOB_ACTIVE);
    const struct queue_options o = { .state = state, .facts = &no_gpus };
    write_files(state, &row, &lost);
    REQUIRE(!queue_open(&o, &q, &err));
    change(state, "DELETE FROM job");
    REQUIRE(!store_add(q.store, &row, &err) && !job_dir_open(state, row.uid, false, &d, &err));
    set_process(state, &lost);
    row.attempt = 1;
    pid_t holder = leave_behind(&d, NULL),
          child = leave_behind(NULL, job_dir_attempt(state, &row, &store_arena)),
          stranger = leave_behind(NULL, "/somewhere/jobs/bbbbbbbbbbbbbbbb/attempt-1");
    int asking = open(arena_printf(&store_arena, "%s/lock", d.path), O_RDWR),
        status = 0; /* and does not lock */
    while (!job_dir_is_held(state, row.uid))
        usleep(1000);
    usleep(50000);
    REQUIRE(!queue_heal(&q, &err));
    CHECK(get_row(q.store, 'a').state == JOB_LOST);
    CHECK(has_ended(holder, &status) && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(has_ended(child, &status) && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK(!kill(stranger, 0) && waitpid(stranger, NULL, WNOHANG) == 0);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
    close(asking);
}

/* A supervisor that this machine cannot name by its PID, as one in a container, is left alone. */
static void what_is_guarded_is_left_alone(void)
{
    static const struct heal_case unknown = { .state = JOB_ACTIVE, .process = GONE, .lock = FREE };
    const char *state = new_state("guarded");
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(queue_close) struct queue q = { 0 };
    struct job_row row = row_named('a', JOB_ACTIVE);
    const struct queue_options o = { .state = state, .facts = &no_gpus };
    write_files(state, &row, &unknown);
    REQUIRE(!queue_open(&o, &q, &err));
    change(state, "DELETE FROM job");
    REQUIRE(!store_add(q.store, &row, &err) && !job_dir_open(state, row.uid, false, &d, &err));
    set_process(state, &unknown);
    pid_t supervisor = fork();
    if (!supervisor) {
        int lock;
        os_set_name("cairn-job");
        _exit(job_dir_hold(&d, &lock, &err) || lock < 0 ? 9 : (int)sleep(600));
    }
    while (!job_dir_is_held(state, row.uid))
        usleep(1000);
    REQUIRE(!queue_heal(&q, &err));
    CHECK(get_row(q.store, 'a').state == JOB_ACTIVE);
    CHECK_INT(waitpid(supervisor, NULL, WNOHANG), 0);
    kill(supervisor, SIGKILL);
    waitpid(supervisor, NULL, 0);
    REQUIRE(!queue_heal(&q, &err));
    CHECK(get_row(q.store, 'a').state == JOB_LOST);
}

int main(void)
{
    RUN(rows_are_set_right);
    RUN(what_is_left_is_ended_first);
    RUN(what_is_guarded_is_left_alone);
    arena_release(&store_arena);
    return check_done();
}
