/* SPDX-License-Identifier: Apache-2.0
 * What is wrong with a configuration, one finding per place: for an editor, which marks lines. */
#ifndef CAIRN_TRAIN_CONFIG_FINDINGS_H
#define CAIRN_TRAIN_CONFIG_FINDINGS_H

#include "train/config.h"

struct config_finding {
    int line, column;    /* from 1; 0: the finding has no place */
    const char *key;     /* "train.lr"; NULL: not known */
    const char *message; /* without the file and the place */
    const char *hint;    /* NULL: none */
};

struct config_findings {
    struct config_finding *errors;
    size_t n_errors;
    const char **notes;
    size_t n_notes;
};

/* Adds what reading or checking c from `file` failed with: all keys that config_read could not take, or else the one
 * error.  `shown` is what to call the file if a message names it. */
void config_findings_add(struct config_findings *f, const struct job_config *c, const char *file,
                         const char *shown, const struct cairn_error *err);

#endif
