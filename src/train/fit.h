/* SPDX-License-Identifier: Apache-2.0
 * Chooses how a job uses memory: the format of the frozen weights, recomputation, and where an idle expert is.  It tries
 * choices in order, the one that costs least first, and takes the first that fits.  Keys that the user set stay, and so
 * do the data: a size that does not fit is the user's to change.  What is offloaded follows from the layout, which
 * training computes by itself (memory_plan.h). */
#ifndef CAIRN_TRAIN_FIT_H
#define CAIRN_TRAIN_FIT_H

#include "train/train.h"

struct train_fit {
    struct train_plan plan; /* of the configuration as it is then */
    /* Lines for the user: what was chosen, and why. */
    const char **lines;
    size_t n_lines;
};
/* Changes o->config.  If nothing fits, plan.lack says so, and the last choice stands. */
int train_fit(const struct train_options *o, struct train_fit *out, struct cairn_error *err);

/* Takes these keys from the configuration of an earlier run instead, so that it can be resumed. */
int train_fit_as(struct job_config *c, const char *earlier, struct cairn_error *err);

#endif
