/* SPDX-License-Identifier: Apache-2.0
 * The files of a checkpoint: names, state.json, sizes and hashes. */
#ifndef CAIRN_TRAIN_CHECKPOINT_FILE_H
#define CAIRN_TRAIN_CHECKPOINT_FILE_H

#include "train/checkpoint.h"

#define CHECKPOINT_MODEL "model.safetensors"
#define CHECKPOINT_MODEL_EMA "model-ema.safetensors"
#define CHECKPOINT_OPTIM "optimizer.safetensors"
#define CHECKPOINT_STATE "state.json"

/* Writes state.json into a folder, with the sizes and hashes of the other files in it. */
int checkpoint_state_write(const char *dir, const struct checkpoint_state *s, struct cairn_error *err);
/* Fails if a file that it names is missing or damaged. */
int checkpoint_state_read(const char *dir, struct checkpoint_state *out, struct cairn_error *err);

/* The step of "step-120"; 0: not a checkpoint's name. */
uint64_t checkpoint_step_of(const char *name);
/* Removes a folder and the files in it. */
int checkpoint_remove(const char *dir, struct cairn_error *err);
int checkpoint_flush_folder(const char *dir, struct cairn_error *err);

#endif
