/* SPDX-License-Identifier: Apache-2.0
 * Opens the device of a training job and sets its memory budget. */
#ifndef CAIRN_START_OPEN_DEVICE_H
#define CAIRN_START_OPEN_DEVICE_H

#include "train/train.h"

/* Opens c's device and fills in the fields of o that describe it. */
int start_open_device(const struct job_config *c, struct arena *a, struct train_options *o,
                      struct cairn_error *err);

#endif
