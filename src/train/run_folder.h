/* SPDX-License-Identifier: Apache-2.0
 * The folder in which a run was started: relative paths in its config.yaml belong to it, wherever it is read. */
#ifndef CAIRN_TRAIN_RUN_FOLDER_H
#define CAIRN_TRAIN_RUN_FOLDER_H

#include "train/config.h"

/* Call it after `file` was read; does nothing unless it is the config.yaml of a run. */
void run_folder_use(struct job_config *c, const char *file);
/* To an error that names a file there: from where relative paths were looked up, if that is not the current folder. */
void run_folder_hint(const struct job_config *c, struct cairn_error *err);

#endif
