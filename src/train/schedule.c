/* SPDX-License-Identifier: Apache-2.0 */
#include "train/schedule.h"

#include <math.h>

struct schedule schedule_of(const struct config_train *t)
{
    return (struct schedule){ t->schedule, t->lr, t->min_lr, t->warmup, t->steps, t->cycles, t->power };
}

/* From 1 down to 0, for progress from 0 to 1. */
static double fall(const struct schedule *s, double progress)
{
    double left = 1 - progress;
    switch (s->kind) {
    case CONFIG_SCHEDULE_COSINE:
        return 0.5 * (1 + cos(M_PI * progress));
    case CONFIG_SCHEDULE_LINEAR:
        return left;
    case CONFIG_SCHEDULE_RESTARTS:
        return left > 0 ? 0.5 * (1 + cos(M_PI * fmod((double)s->cycles * progress, 1))) : 0;
    case CONFIG_SCHEDULE_POLYNOMIAL:
        return pow(left, s->power);
    case CONFIG_SCHEDULE_REX: /* reflected exponential, with the usual 0.1 and 0.9 */
        return left / (0.1 + 0.9 * left);
    case CONFIG_SCHEDULE_CONSTANT:
    case CONFIG_SCHEDULES:
        break;
    }
    return 1;
}

double schedule_rate(const struct schedule *s, int64_t step)
{
    if (step < s->warmup) /* the first step's rate is above 0 */
        return s->lr * (double)(step + 1) / (double)(s->warmup + 1);
    double progress = step < s->steps ? (double)(step - s->warmup) / (double)(s->steps - s->warmup) : 1;
    return s->lr * (s->min_share + (1 - s->min_share) * fall(s, progress));
}
