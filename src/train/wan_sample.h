/* SPDX-License-Identifier: Apache-2.0
 * Samples of a Wan model that was saved, for `cairn sample`. */
#ifndef CAIRN_TRAIN_WAN_SAMPLE_H
#define CAIRN_TRAIN_WAN_SAMPLE_H

#include "train/loaded_model.h"
#include "train/sample_files.h"

/* Makes a sample of each prompt of an open model, in a folder that exists.  After an OOM the model takes
 * less of the device's memory, if that is possible.  A sample that fails all the same is said, and the others go on;
 * *n_asked is then more than *n_made. */
int wan_sample_saved(struct loaded_model *t, const char *dir, const struct sample_file **made, size_t *n_made,
                     size_t *n_asked, struct cairn_error *err);

#endif
