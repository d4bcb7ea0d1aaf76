/* SPDX-License-Identifier: Apache-2.0
 * The learning rate as a function of the step, and of nothing else: a resumed run needs no state.
 *
 * Steps count from 0.  The rate rises linearly over `warmup` steps, reaches lr at step `warmup`, and decays
 * from there to lr * min_share at step `steps`, where it stays.  A constant one does not decay. */
#ifndef CAIRN_TRAIN_SCHEDULE_H
#define CAIRN_TRAIN_SCHEDULE_H

#include "train/config.h"
#include <stdint.h>

struct schedule {
    enum config_schedule kind;
    double lr, min_share;
    int64_t warmup, steps;
    int64_t cycles; /* of restarts */
    double power;   /* of polynomial */
};

struct schedule schedule_of(const struct config_train *t);
double schedule_rate(const struct schedule *s, int64_t step);

#endif
