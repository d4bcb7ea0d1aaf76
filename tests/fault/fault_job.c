/* SPDX-License-Identifier: Apache-2.0
 * A queue in which each outside call fails once, in turn: no row is without a folder, nothing that was added is lost,
 * and a job that runs never looks dead. */
#include "check.h"
#include "job/job_dir.h"
#include "job/queue.h"
#include "os/fault.h"
#include "os/info.h"
#include "os/process.h"
#include "tree.h"
#include <errno.h>

enum { MOST = 3000 };

static struct arena arena;
static const struct facts no_gpus = { .default_gpu = -1, .root.fd = -1 };
static const struct job_row wish = { .name = "x", .kind = JOB_TRAIN, .config = "a: 1\n", .cwd = "/" };

static int open_at(const char *state, struct queue *q, struct cairn_error *err)
{
    const struct queue_options o = { .state = state, .facts = &no_gpus };
    return queue_open(&o, q, err);
}

static size_t count_rows(const char *state)
{
    CLEANUP(queue_close) struct queue q = { 0 };
    struct cairn_error err = { 0 };
    struct job_row *rows;
    size_t n = 0;
    const struct store_query all = { 0 };
    if (open_at(state, &q, &err) || store_list(q.store, &all, &arena, &rows, &n, &err))
        CHECK_FAIL_("%s", err.msg);
    for (size_t i = 0; i < n; i++)
        if (!os_is_file(arena_printf(&arena, "%s/job.json", job_dir_path(state, rows[i].uid, &arena))))
            CHECK_FAIL_("%s has no folder", rows[i].uid);
    return n;
}

static int add_one(const char *state, struct cairn_error *err)
{
    CLEANUP(queue_close) struct queue q = { 0 };
    struct job_row made;
    return open_at(state, &q, err) || queue_add(&q, &wish, false, &arena, &made, err) ? -1 : 0;
}

/* The first time also makes the database and the folders. */
static void adding_is_all_or_nothing(void)
{
    struct tree t;
    tree_make(&t);
    const char *state = arena_printf(&arena, "%s/cairn", t.dir);
    size_t added = 0;
    int nth = 0;
    for (bool reached = true; reached && nth < MOST;) {
        struct cairn_error err = { 0 };
        nth++;
        fault_arm(nth, nth % 2 ? ENOSPC : EMFILE);
        int r = add_one(state, &err);
        reached = fault_disarm();
        if (r && !err.msg[0])
            CHECK_FAIL_("call %d: no message", nth);
        added += r == 0;
        if (count_rows(state) != added) {
            CHECK_FAIL_("call %d: %zu rows, %zu were added", nth, count_rows(state), added);
            break;
        }
    }
    CHECK(nth > 10 && nth < MOST && added > 0);
    tree_remove(&t);
}

/* Folders of the trash, of a job whose row could not be written, are not rows. */
static void removing_and_editing_are_all_or_nothing(void)
{
    struct tree t;
    tree_make(&t);
    const char *state = arena_printf(&arena, "%s/cairn", t.dir);
    CLEANUP(queue_close) struct queue q = { 0 };
    struct cairn_error first = { 0 };
    struct job_row made, now;
    REQUIRE(!open_at(state, &q, &first) && !queue_add(&q, &wish, false, &arena, &made, &first));
    int nth = 0;
    for (bool reached = true; reached && nth < MOST;) {
        struct cairn_error err = { 0 };
        bool conflict;
        const char *note = arena_printf(&arena, "note %d", nth), *before = NULL;
        REQUIRE(!store_get(q.store, made.uid, &arena, &now, &err));
        before = now.note;
        fault_arm(++nth, EMFILE);
        int r = queue_edit(&q, made.uid, now.version, &(struct store_edit){ .note = note }, &conflict, &err);
        reached = fault_disarm();
        struct cairn_error ignored = { 0 };
        struct job_row read;
        REQUIRE(!store_get(q.store, made.uid, &arena, &now, &ignored));
        CHECK_STR(now.note, r ? before : note);
        REQUIRE(!job_dir_read(state, made.uid, &arena, &read, &ignored));
    }
    CHECK(nth > 5 && nth < MOST);
    for (nth = 1; nth < MOST; nth++) {
        struct cairn_error err = { 0 };
        bool has;
        fault_arm(nth, EMFILE);
        int r = queue_remove(&q, made.uid, true, &err);
        bool reached = fault_disarm();
        REQUIRE(!store_has(q.store, made.uid, &has, &first));
        if (has && !os_is_folder(job_dir_path(state, made.uid, &arena)))
            CHECK_FAIL_("call %d: a row without a folder", nth);
        if (!reached && !r)
            break;
        if (!has) /* its folder could not be moved; it is added again */
            REQUIRE(!queue_add(&q, &wish, false, &arena, &made, &first));
    }
    CHECK(nth < MOST);
    tree_remove(&t);
}

static void a_job_that_runs_never_looks_dead(void)
{
    struct tree t;
    tree_make(&t);
    const char *state = arena_printf(&arena, "%s/cairn", t.dir);
    CLEANUP(queue_close) struct queue q = { 0 };
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    struct cairn_error err = { 0 };
    struct os_process_id me;
    struct job_row row = { .uid = "aaaaaaaaaaaaaaaa",
                           .name = "x",
                           .kind = JOB_RUN,
                           .argv = "[\"x\"]",
                           .cwd = "/",
                           .state = JOB_ACTIVE,
                           .gpu = "cpu",
                           .gpu_used = "cpu",
                           .attempt = 1 },
                   now;
    int lock, nth = 0;
    REQUIRE(os_process_id(getpid(), &me));
    row.pid = me.pid;
    row.pid_start = (int64_t)me.start;
    row.boot_id = me.boot;
    REQUIRE(!open_at(state, &q, &err) && !store_add(q.store, &row, &err));
    REQUIRE(!job_dir_open(state, row.uid, true, &d, &err) && !job_dir_hold(&d, &lock, &err) && lock >= 0);
    for (bool reached = true; reached && nth < MOST;) {
        nth++;
        fault_arm(nth, nth % 2 ? EMFILE : EACCES);
        queue_heal(&q, &err);
        reached = fault_disarm();
        REQUIRE(!store_get(q.store, row.uid, &arena, &now, &err));
        if (now.state != JOB_ACTIVE)
            CHECK_FAIL_("call %d: %s", nth, job_state_name(now.state));
    }
    CHECK(nth > 2 && nth < MOST);
    close(lock);
    tree_remove(&t);
}

/* The supervisor is this program, which ends at once. */
static void a_job_that_cannot_start_stays_in_the_queue(void)
{
    struct tree t;
    tree_make(&t);
    const char *state = arena_printf(&arena, "%s/cairn", t.dir);
    CLEANUP(queue_close) struct queue q = { 0 };
    struct cairn_error err = { 0 };
    struct job_row made, now;
    int nth = 0, refused = 0;
    REQUIRE(!open_at(state, &q, &err) && !queue_add(&q, &wish, true, &arena, &made, &err));
    for (bool reached = true; reached && nth < MOST;) {
        nth++;
        fault_arm(nth, nth % 2 ? EAGAIN : ENOSPC);
        err = (struct cairn_error){ 0 };
        int r = queue_advance(&q, &err);
        reached = fault_disarm();
        struct cairn_error ignored = { 0 };
        REQUIRE(!store_get(q.store, made.uid, &arena, &now, &ignored));
        if (r && (now.state != JOB_QUEUED || now.attempt || now.claims || !err.msg[0]))
            CHECK_FAIL_("call %d: %s, %d claims", nth, job_state_name(now.state), (int)now.claims);
        if (!r && now.state != JOB_STARTING)
            CHECK_FAIL_("call %d: %s", nth, job_state_name(now.state));
        refused += r != 0;
        if (!r) /* as the supervisor would have */
            REQUIRE(!store_unclaim(q.store, made.uid, now.attempt, false, &ignored));
    }
    CHECK(nth > 5 && nth < MOST && refused > 3);
    tree_remove(&t);
}

int main(int argc, char **argv)
{
    if (argc > 2 && !strcmp(argv[1], "job"))
        return 0;
    RUN(adding_is_all_or_nothing);
    RUN(removing_and_editing_are_all_or_nothing);
    RUN(a_job_that_runs_never_looks_dead);
    RUN(a_job_that_cannot_start_stays_in_the_queue);
    arena_release(&arena);
    return check_done();
}
