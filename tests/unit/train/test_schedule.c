/* SPDX-License-Identifier: Apache-2.0 */
#include "train/schedule.h"

#include "check.h"
#include <math.h>

static struct schedule of(enum config_schedule kind, int64_t warmup)
{
    return (struct schedule){
        .kind = kind, .lr = 2, .min_share = 0.1, .warmup = warmup, .steps = 110, .cycles = 1, .power = 1
    };
}

#define CHECK_RATE(s, step, want)                                                \
    do {                                                                         \
        double got_ = schedule_rate(&(s), (step)), want_ = (want);               \
        if (!(fabs(got_ - want_) <= 1e-12))                                      \
            CHECK_FAIL_("step %d: %.17g, want %.17g", (int)(step), got_, want_); \
    } while (0)

static void warm_up_is_a_line(void)
{
    for (int kind = CONFIG_SCHEDULE_COSINE; kind < CONFIG_SCHEDULES; kind++) {
        struct schedule s = of((enum config_schedule)kind, 10);
        CHECK_RATE(s, 0, 2 * 1.0 / 11);
        CHECK_RATE(s, 4, 2 * 5.0 / 11);
        CHECK_RATE(s, 9, 2 * 10.0 / 11);
        CHECK_RATE(s, 10, 2);
    }
}

static void constant_stays(void)
{
    struct schedule s = of(CONFIG_SCHEDULE_CONSTANT, 0);
    CHECK_RATE(s, 0, 2);
    CHECK_RATE(s, 109, 2);
    CHECK_RATE(s, 1000, 2);
}

static void linear_falls_to_the_least(void)
{
    struct schedule s = of(CONFIG_SCHEDULE_LINEAR, 10);
    CHECK_RATE(s, 35, 2 * (0.1 + 0.9 * 0.75));
    CHECK_RATE(s, 60, 2 * 0.55);
    CHECK_RATE(s, 110, 0.2);
    CHECK_RATE(s, 5000, 0.2);
}

static void cosine_falls_to_the_least(void)
{
    struct schedule s = of(CONFIG_SCHEDULE_COSINE, 10);
    CHECK_RATE(s, 35, 2 * (0.1 + 0.9 * (0.5 + sqrt(0.5) / 2)));
    CHECK_RATE(s, 60, 2 * 0.55);
    CHECK_RATE(s, 110, 0.2);
    CHECK_RATE(s, 5000, 0.2);
}

/* The formulas of transformers: get_cosine_with_hard_restarts_schedule_with_warmup and get_polynomial_decay_… */
static void restarts_go_through_the_cosine_again(void)
{
    struct schedule s = of(CONFIG_SCHEDULE_RESTARTS, 10);
    s.min_share = 0;
    s.cycles = 4;
    for (int64_t step = 10; step < 110; step++) {
        double progress = (double)(step - 10) / 100, within = fmod(4 * progress, 1);
        CHECK_RATE(s, step, 2 * 0.5 * (1 + cos(M_PI * within)));
    }
    CHECK_RATE(s, 35, 2);
    CHECK_RATE(s, 110, 0);
}

static void a_polynomial_has_its_power(void)
{
    struct schedule s = of(CONFIG_SCHEDULE_POLYNOMIAL, 10);
    s.power = 3;
    s.min_share = 1e-7 / 2;
    for (int64_t step = 10; step <= 110; step++)
        CHECK_RATE(s, step, (2 - 1e-7) * pow(1 - (double)(step - 10) / 100, 3) + 1e-7);
}

/* lr (min + (1 - min) z / (0.1 + 0.9 z)), z the share that remains. */
static void rex_falls_late(void)
{
    struct schedule s = of(CONFIG_SCHEDULE_REX, 10);
    CHECK_RATE(s, 10, 2);
    CHECK_RATE(s, 60, 2 * (0.1 + 0.9 * 0.5 / 0.55));
    CHECK_RATE(s, 100, 2 * (0.1 + 0.9 * 0.1 / 0.19));
    CHECK_RATE(s, 110, 0.2);
}

static void it_never_rises_after_the_warm_up(void)
{
    for (int kind = CONFIG_SCHEDULE_COSINE; kind < CONFIG_SCHEDULES; kind++) {
        struct schedule s = of((enum config_schedule)kind, 7);
        for (int64_t step = 0; step < 120; step++) {
            double here = schedule_rate(&s, step), next = schedule_rate(&s, step + 1);
            CHECK(step < 7 ? next > here : next <= here);
            CHECK(here > 0 && here <= 2);
        }
    }
}

/* Then nothing is left to fall over. */
static void a_warm_up_of_all_steps_ends_at_the_least(void)
{
    struct schedule s = of(CONFIG_SCHEDULE_COSINE, 110);
    CHECK_RATE(s, 109, 2 * 110.0 / 111);
    CHECK_RATE(s, 110, 0.2);
}

static void it_comes_from_the_configuration(void)
{
    struct config_train t = {
        .schedule = CONFIG_SCHEDULE_LINEAR, .lr = 1, .min_lr = 0.5, .warmup = 3, .steps = 13
    };
    struct schedule s = schedule_of(&t);
    CHECK_RATE(s, 0, 0.25);
    CHECK_RATE(s, 8, 0.75);
    CHECK_RATE(s, 13, 0.5);
}

int main(void)
{
    RUN(warm_up_is_a_line);
    RUN(constant_stays);
    RUN(linear_falls_to_the_least);
    RUN(cosine_falls_to_the_least);
    RUN(restarts_go_through_the_cosine_again);
    RUN(a_polynomial_has_its_power);
    RUN(rex_falls_late);
    RUN(it_never_rises_after_the_warm_up);
    RUN(a_warm_up_of_all_steps_ends_at_the_least);
    RUN(it_comes_from_the_configuration);
    return check_done();
}
