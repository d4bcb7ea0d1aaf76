/* SPDX-License-Identifier: Apache-2.0
 * lora.path: training that starts from an existing LoRA. */
#ifndef CAIRN_TRAIN_LORA_START_H
#define CAIRN_TRAIN_LORA_START_H

#include "train/job.h"

/* Takes the rank and alpha that are not set from the file. */
int lora_start_resolve(struct job_config *c, struct cairn_error *err);
/* Loads the file into every set of the model; does nothing without lora.path.  Before the base is loaded, which
 * takes longer, it serves to refuse a file that does not fit, and says nothing. */
int lora_start_load(struct job *j, bool says, struct cairn_error *err);

#endif
