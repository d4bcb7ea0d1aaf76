/* SPDX-License-Identifier: Apache-2.0
 * The library to preload in processes that fork. */
#include "trial.h"

static void a_child_of_fork_has_its_own_file(void)
{
    size_t before = n_files();
    struct outcome o = TRY("fork", "record,stage");
    CHECK_HAS(o.out, "child 0 1\nstatus 7\n");
    CHECK_HAS(o.out, "status 7\n0 1 0 1 0 1 0 1 last 0");
    CHECK_INT(n_files(), before + 2);
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(r->counts.staged, 8);
}

static void fork_takes_no_lock_along(void)
{
    struct outcome o = TRY("fork-busy", "record,stage,retry,memory");
    CHECK_STR(o.out, "status 0\n");
}

static void a_signal_may_fork_inside_of_a_call(void)
{
    CHECK_STR(TRY("fork-signal", "record").out, "bad 0\n");
}

static void fork_takes_no_lock_of_the_loader_along(void)
{
    CHECK_STR(TRY("fork-loader", "record").out, "status 0\n0\nstatus 0\n");
}

static void threads_are_known_after_fork(void)
{
    struct outcome o = TRY("fork-thread", "record");
    struct record *r = record_of(atoi(o.out));
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 2);
    CHECK(r->call[1].thread != r->pid);
    CHECK_INT(r->call[2].thread, r->pid);
}

int main(int argc, char **argv)
{
    if (!trial_begin(argc, argv))
        return 2;
    RUN(a_child_of_fork_has_its_own_file);
    RUN(fork_takes_no_lock_along);
    RUN(a_signal_may_fork_inside_of_a_call);
    RUN(fork_takes_no_lock_of_the_loader_along);
    RUN(threads_are_known_after_fork);
    return trial_done();
}
