/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/watch.h"

#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int slow_times, slow_begun, stuck_times; /* the last two are atomic */
static char stuck_words[256], slow_call[64];

static void nap(int ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000L };
    while (nanosleep(&t, &t))
        ;
}

static void on_slow(void *to, double spent_s, const char *call)
{
    CHECK(to == &slow_times);
    CHECK(spent_s >= 0.2);
    snprintf(slow_call, sizeof(slow_call), "%s", call ? call : "none");
    __atomic_store_n(&slow_begun, 1, __ATOMIC_RELEASE);
    nap(100);
    slow_times++;
}

static void on_stuck(const struct cairn_error *why)
{
    snprintf(stuck_words, sizeof(stuck_words), "%s", why->msg);
    __atomic_add_fetch(&stuck_times, 1, __ATOMIC_RELEASE);
}

static struct watch_work work(double slow_s, double end_s)
{
    return (struct watch_work){ "step 12", slow_s, end_s, on_slow, &slow_times };
}

/* One that is over in time is not told; a slow one is, once, and its end waits for that. */
static void slow_work_is_told(void)
{
    struct watch_work w = work(60, 0);
    watch_work_begin(&w);
    nap(300);
    watch_work_end();
    CHECK_INT(slow_times, 0);
    w = work(0.2, 0);
    watch_work_begin(&w);
    watch_enter("hip:0", "launch gelu");
    while (!__atomic_load_n(&slow_begun, __ATOMIC_ACQUIRE))
        nap(10);
    watch_leave();
    watch_work_end();
    CHECK_INT(slow_times, 1);
    CHECK_STR(slow_call, "launch gelu");
    nap(300);
    CHECK_INT(slow_times, 1);
}

/* Another process wakes this one up again. */
static void stand_still(int ms)
{
    pid_t me = getpid(), other = fork();
    if (!other) {
        nap(ms);
        kill(me, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(other, NULL, 0);
}

static void time_at_a_stand_does_not_count(void)
{
    struct watch_work w = work(1.2, 0);
    int before = slow_times;
    watch_work_begin(&w);
    stand_still(1500);
    nap(200);
    watch_work_end();
    CHECK_INT(slow_times, before);
}

static void work_without_end_is_told(void)
{
    struct watch_work w = work(0, 0.3);
    watch_work_begin(&w);
    nap(500);
    while (!__atomic_load_n(&stuck_times, __ATOMIC_ACQUIRE))
        nap(10);
    watch_work_end();
    CHECK_HAS(stuck_words, "step 12: timed out after");
    nap(300);
    CHECK_INT(__atomic_load_n(&stuck_times, __ATOMIC_ACQUIRE), 1);
}

static bool was_told(void)
{
    return __atomic_load_n(&stuck_times, __ATOMIC_ACQUIRE);
}

/* The first thing that is wrong; 0: nothing. */
static int watch_calls(void)
{
    struct cairn_error err = { 0 };
    if (watch_start(1, on_stuck, &err))
        return 99;
    for (int i = 0; i < 60; i++) {
        watch_enter("hip:0", "launch gelu");
        nap(25);
        watch_leave();
    }
    nap(1300);
    if (was_told())
        return 1;
    watch_enter("hip:0", "launch rope");
    stand_still(1500);
    nap(300);
    if (was_told())
        return 2;
    for (int i = 0; i < 500 && !was_told(); i++)
        nap(10);
    return !was_told() ? 3
                       : strcmp(stuck_words, "hip:0: launch rope: the driver has not answered for 1 s") != 0;
}

/* In a process of its own, since a process has one limit. */
static void only_a_call_that_stays_is_told(void)
{
    int status = -1;
    fflush(stdout);
    pid_t child = fork();
    if (!child)
        _exit(watch_calls());
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(WEXITSTATUS(status), 0);
    CHECK(WIFEXITED(status));
}

int main(void)
{
    struct cairn_error err = { 0 };
    RUN(only_a_call_that_stays_is_told);
    if (watch_start(60, on_stuck, &err))
        return 99;
    RUN(slow_work_is_told);
    RUN(time_at_a_stand_does_not_count);
    RUN(work_without_end_is_told);
    return check_done();
}
