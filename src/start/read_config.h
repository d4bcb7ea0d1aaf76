/* SPDX-License-Identifier: Apache-2.0
 * The configuration of a training job, with the changes from the command line. */
#ifndef CAIRN_START_READ_CONFIG_H
#define CAIRN_START_READ_CONFIG_H

#include "train/config.h"

struct config_changes {
    const char *const *set; /* KEY=VALUE */
    size_t n_set;
    const char *device; /* NULL: as the file says */
    int steps;          /* -1: as the file says */
};
int start_read_config(const struct config_changes *changes, const char *file, struct job_config *c,
                      struct cairn_error *err);
/* The two parts of it; afterwards comes config_check. */
int start_parse_config(const char *file, struct job_config *c, struct cairn_error *err);
int start_change_config(const struct config_changes *changes, struct job_config *c, struct cairn_error *err);

#endif
