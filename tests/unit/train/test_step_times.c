/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step_times.h"

#include "check.h"
#include "train/step_watch.h"

static void add(struct step_times *p, int n, double seconds)
{
    for (int i = 0; i < n; i++)
        step_times_add(p, seconds);
}

static void it_takes_some_steps_to_know(void)
{
    struct step_times p = { 0 };
    add(&p, 2, 1000); /* these compile */
    add(&p, STEP_TIMES_ENOUGH - 1, 1);
    CHECK(step_times_median(&p) == 0 && step_times_slow_s(&p, 1, 60) == 0 &&
          step_times_end_s(&p, 1, 60) == 0);
    add(&p, 1, 1);
    CHECK(step_times_median(&p) == 1);
}

static void limits_follow_the_median(void)
{
    struct step_times p = { 0 };
    add(&p, 20, 4);
    add(&p, 3, 500);
    CHECK(step_times_slow_s(&p, 1, 60) == 40);
    CHECK(step_times_end_s(&p, 1, 60) == 180);
    step_times_reset(&p);
    CHECK(step_times_slow_s(&p, 1, 60) == 0);
    add(&p, 7, 20);
    CHECK(step_times_slow_s(&p, 1, 60) == 200);
    CHECK(step_times_end_s(&p, 1, 60) == 600);
}

static void short_steps_are_not_slow_soon(void)
{
    struct step_times p = { 0 };
    add(&p, 40, 0.05);
    CHECK(step_times_slow_s(&p, 1, 60) == 10);
    CHECK(step_times_end_s(&p, 1, 60) == 180);
    CHECK(step_times_slow_s(&p, 1, 0) == 0 && step_times_end_s(&p, 1, 0) == 0);
}

static void more_work_may_take_longer(void)
{
    struct step_times p = { 0 };
    add(&p, 20, 2);
    CHECK(step_times_slow_s(&p, 1, 60) == 20 && step_times_slow_s(&p, 10, 60) == 200);
    CHECK(step_times_end_s(&p, 10, 60) == 600);
}

static void old_steps_are_forgotten(void)
{
    struct step_times p = { 0 };
    add(&p, 100, 1);
    add(&p, STEP_TIMES_MOST / 2 + 1, 9);
    CHECK(step_times_median(&p) == 9);
}

/* Steps of 1 and of 8 units, a second each unit: one median for both. */
static void a_watch_knows_the_work_of_steps(void)
{
    struct cairn_error err = { 0 };
    struct step_watch w = { 0 };
    struct step_record last = { 0 };
    struct gpu *g;
    if (gpu_open("cpu", &g, &err)) {
        CHECK_FAIL_("%s", err.msg);
        return;
    }
    for (uint64_t i = 0; i < 20; i++) {
        double work = i % 3 ? 8 : 1;
        struct step_watch_options o = { .g = g, .dir = "", .work = work };
        step_watch_begin(&w, &o, i, &last);
        step_watch_end(&w, true, work);
    }
    CHECK(step_times_median(&w.times) == 1);
    gpu_close(g);
}

int main(void)
{
    RUN(it_takes_some_steps_to_know);
    RUN(limits_follow_the_median);
    RUN(short_steps_are_not_slow_soon);
    RUN(more_work_may_take_longer);
    RUN(a_watch_knows_the_work_of_steps);
    RUN(old_steps_are_forgotten);
    return check_done();
}
