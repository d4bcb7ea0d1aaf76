/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step_times.h"

#include "check.h"

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
    CHECK(step_times_median(&p) == 0 && step_times_slow_s(&p, 60) == 0 && step_times_end_s(&p, 60) == 0);
    add(&p, 1, 1);
    CHECK(step_times_median(&p) == 1);
}

static void limits_follow_the_median(void)
{
    struct step_times p = { 0 };
    add(&p, 20, 4);
    add(&p, 3, 500);
    CHECK(step_times_slow_s(&p, 60) == 40);
    CHECK(step_times_end_s(&p, 60) == 180);
    step_times_reset(&p);
    CHECK(step_times_slow_s(&p, 60) == 0);
    add(&p, 7, 20);
    CHECK(step_times_slow_s(&p, 60) == 200);
    CHECK(step_times_end_s(&p, 60) == 600);
}

static void short_steps_are_not_slow_soon(void)
{
    struct step_times p = { 0 };
    add(&p, 40, 0.05);
    CHECK(step_times_slow_s(&p, 60) == 10);
    CHECK(step_times_end_s(&p, 60) == 180);
    CHECK(step_times_slow_s(&p, 0) == 0 && step_times_end_s(&p, 0) == 0);
}

static void old_steps_are_forgotten(void)
{
    struct step_times p = { 0 };
    add(&p, 100, 1);
    add(&p, STEP_TIMES_MOST / 2 + 1, 9);
    CHECK(step_times_median(&p) == 9);
}

int main(void)
{
    RUN(it_takes_some_steps_to_know);
    RUN(limits_follow_the_median);
    RUN(short_steps_are_not_slow_soon);
    RUN(old_steps_are_forgotten);
    return check_done();
}
