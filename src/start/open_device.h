/* SPDX-License-Identifier: Apache-2.0
 * The device of a training job, and how much of its memory the job may take. */
#ifndef CAIRN_START_OPEN_DEVICE_H
#define CAIRN_START_OPEN_DEVICE_H

#include "train/train.h"

/* Opens it and fills in all that options say of it. */
int start_open_device(const struct job_config *c, struct arena *a, struct train_options *o,
                      struct cairn_error *err);

#endif
