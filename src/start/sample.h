/* SPDX-License-Identifier: Apache-2.0
 * Opens a trained model for samples on this machine: its configuration with the changes of the command line, the
 * environment of this process, the device, and the model in a layout that fits into its memory. */
#ifndef CAIRN_START_SAMPLE_H
#define CAIRN_START_SAMPLE_H

#include "start/read_config.h"
#include "train/loaded_model.h"

struct start_sample_options {
    struct loaded_model_options model;
    struct config_changes changes;
    /* Further changes, once the configuration is read; NULL: none. */
    int (*adjust)(void *ctx, struct job_config *c, struct cairn_error *err);
    void *ctx;
    int hang_after_s;
    const struct message_sink *messages; /* must live as long as the device is in use */
};

/* Call start_sample_close even if it fails. */
int start_sample_open(struct loaded_model *t, const struct start_sample_options *o, struct cairn_error *err);
void start_sample_close(struct loaded_model *t);

#endif
