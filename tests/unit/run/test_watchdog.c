/* SPDX-License-Identifier: Apache-2.0 */
#include "run/watchdog.h"

#include "check.h"

/* A machine that stands still, at second t. */
static struct watch_sample still(double t)
{
    return (struct watch_sample){ .now_s = t,
                                  .output_bytes = 100,
                                  .cpu_ticks = 500,
                                  .ticks_per_s = 100,
                                  .busy_percent = -1,
                                  .gpu_bytes = -1 };
}

static bool feed(struct watchdog *w, struct watch_sample s)
{
    return watchdog_feed(w, &s);
}

static void barks_when_nothing_moves(void)
{
    struct watchdog w;
    watchdog_init(&w, 10);
    for (int t = 0; t < 10; t++)
        CHECK(!feed(&w, still(t)));
    CHECK(feed(&w, still(10)));
}

static void is_quiet_when_switched_off(void)
{
    struct watchdog w;
    watchdog_init(&w, 0);
    CHECK(!feed(&w, still(0)));
    CHECK(!feed(&w, still(1e6)));
}

static void output_is_movement(void)
{
    struct watchdog w;
    watchdog_init(&w, 10);
    feed(&w, still(0));
    struct watch_sample s = still(9);
    s.output_bytes++;
    CHECK(!feed(&w, s));
    s.now_s = 18;
    CHECK(!feed(&w, s));
    s.now_s = 19;
    CHECK(feed(&w, s));
}

static void cpu_time_is_movement_but_waking_up_is_not(void)
{
    struct watchdog w;
    watchdog_init(&w, 100);
    feed(&w, still(0));
    for (int t = 1; t <= 100; t++) { /* half a percent of a core */
        struct watch_sample s = still(t);
        s.cpu_ticks += (uint64_t)t / 2;
        CHECK(feed(&w, s) == (t == 100));
    }
    watchdog_init(&w, 100);
    feed(&w, still(0));
    for (int t = 1; t <= 200; t++) { /* a tenth of a core */
        struct watch_sample s = still(t);
        s.cpu_ticks += (uint64_t)t * 10;
        CHECK(!feed(&w, s));
    }
}

static void a_process_that_ends_is_movement(void)
{
    struct watchdog w;
    watchdog_init(&w, 10);
    feed(&w, still(0));
    struct watch_sample s = still(9);
    s.cpu_ticks = 10;
    CHECK(!feed(&w, s));
    s.now_s = 15;
    CHECK(!feed(&w, s));
}

static void the_gpu_at_work_is_movement(void)
{
    struct watchdog w;
    watchdog_init(&w, 10);
    for (int t = 0; t < 50; t++) {
        struct watch_sample s = still(t);
        s.busy_percent = 60;
        s.gpu_bytes = 1 << 30;
        CHECK(!feed(&w, s));
    }
}

static void a_pinned_gpu_is_movement_only_if_its_memory_changes(void)
{
    struct watchdog w;
    watchdog_init(&w, 10);
    for (int t = 0; t < 50; t++) {
        struct watch_sample s = still(t);
        s.busy_percent = 100;
        s.gpu_bytes = t << 20;
        CHECK(!feed(&w, s));
    }
    struct watch_sample s = still(50);
    s.busy_percent = 100;
    s.gpu_bytes = 49 << 20;
    CHECK(!feed(&w, s));
    s.now_s = 58.9;
    CHECK(!feed(&w, s));
    s.now_s = 59;
    CHECK(feed(&w, s));
}

static void an_idle_gpu_is_none(void)
{
    struct watchdog w;
    watchdog_init(&w, 10);
    struct watch_sample s = still(0);
    s.busy_percent = 1;
    feed(&w, s);
    s.now_s = 10;
    CHECK(feed(&w, s));
}

static void rest_starts_anew(void)
{
    struct watchdog w;
    watchdog_init(&w, 10);
    feed(&w, still(0));
    watchdog_rest(&w);
    CHECK(!feed(&w, still(1000)));
    CHECK(!feed(&w, still(1009)));
    CHECK(feed(&w, still(1010)));
}

int main(void)
{
    RUN(barks_when_nothing_moves);
    RUN(is_quiet_when_switched_off);
    RUN(output_is_movement);
    RUN(cpu_time_is_movement_but_waking_up_is_not);
    RUN(a_process_that_ends_is_movement);
    RUN(the_gpu_at_work_is_movement);
    RUN(a_pinned_gpu_is_movement_only_if_its_memory_changes);
    RUN(an_idle_gpu_is_none);
    RUN(rest_starts_anew);
    return check_done();
}
