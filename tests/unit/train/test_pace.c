/* SPDX-License-Identifier: Apache-2.0 */
#include "train/pace.h"

#include "check.h"

static void add(struct pace *p, int n, double seconds)
{
    for (int i = 0; i < n; i++)
        pace_add(p, seconds);
}

static void it_takes_some_steps_to_know(void)
{
    struct pace p = { 0 };
    add(&p, 2, 1000); /* these compile */
    add(&p, PACE_ENOUGH - 1, 1);
    CHECK(pace_median(&p) == 0 && pace_slow_s(&p, 60) == 0 && pace_end_s(&p, 60) == 0);
    add(&p, 1, 1);
    CHECK(pace_median(&p) == 1);
}

static void limits_follow_the_median(void)
{
    struct pace p = { 0 };
    add(&p, 20, 4);
    add(&p, 3, 500);
    CHECK(pace_slow_s(&p, 60) == 40);
    CHECK(pace_end_s(&p, 60) == 180);
    pace_forget(&p);
    CHECK(pace_slow_s(&p, 60) == 0);
    add(&p, 7, 20);
    CHECK(pace_slow_s(&p, 60) == 200);
    CHECK(pace_end_s(&p, 60) == 600);
}

static void short_steps_are_not_slow_soon(void)
{
    struct pace p = { 0 };
    add(&p, 40, 0.05);
    CHECK(pace_slow_s(&p, 60) == 10);
    CHECK(pace_end_s(&p, 60) == 180);
    CHECK(pace_slow_s(&p, 0) == 0 && pace_end_s(&p, 0) == 0);
}

static void old_steps_are_forgotten(void)
{
    struct pace p = { 0 };
    add(&p, 100, 1);
    add(&p, PACE_KEPT / 2 + 1, 9);
    CHECK(pace_median(&p) == 9);
}

int main(void)
{
    RUN(it_takes_some_steps_to_know);
    RUN(limits_follow_the_median);
    RUN(short_steps_are_not_slow_soon);
    RUN(old_steps_are_forgotten);
    return check_done();
}
