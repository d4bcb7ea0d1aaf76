/* SPDX-License-Identifier: Apache-2.0
 * The configuration of a training job, with the changes from the command line. */
#ifndef CAIRN_START_READ_CONFIG_H
#define CAIRN_START_READ_CONFIG_H

#include "base/message_sink.h"
#include "train/foreign.h"

struct config_changes {
    const char *const *set; /* KEY=VALUE */
    size_t n_set;
    const char *device; /* NULL: as the file says */
    int steps;          /* -1: as the file says */
    bool only_plan;     /* weights may be missing, and so may the GPU that a job of another trainer names */
};
/* A file of our schema, or a job of another trainer, whose notes go to `sink`. */
int start_read_config(const struct config_changes *changes, const char *file, struct job_config *c,
                      const struct message_sink *sink, struct cairn_error *err);
/* The parts of it; afterwards comes config_check. */
int start_parse_config(const char *file, struct job_config *c, const struct message_sink *sink,
                       struct cairn_error *err);
int start_change_config(const struct config_changes *changes, struct job_config *c, struct cairn_error *err);
/* Fails if a job of another trainer names weights that are not on this machine. */
int start_check_weights(const struct job_config *c, struct cairn_error *err);

/* The job of another trainer.  *found: it is one; errors count only then. */
int start_read_foreign(const char *file, struct arena *a, struct foreign_job *out, bool *found,
                       struct cairn_error *err);

#endif
