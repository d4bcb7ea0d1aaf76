/* SPDX-License-Identifier: Apache-2.0
 * What all commands about a training job begin with: its configuration and its device. */
#ifndef CAIRN_CLI_TRAIN_SETUP_H
#define CAIRN_CLI_TRAIN_SETUP_H

#include "cli/options.h"
#include "train/train.h"

struct train_wish {
    struct opt_list set; /* --set */
    const char *device;
    int steps; /* -1: as the file says */
};
int train_read_config(const struct train_wish *w, const char *file, struct job_config *c,
                      struct cairn_error *err);
/* Opens it and fills in all that options say of it. */
int train_open_device(const struct job_config *c, struct arena *a, struct train_options *o,
                      struct cairn_error *err);

#endif
