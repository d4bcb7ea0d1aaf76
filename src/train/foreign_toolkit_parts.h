/* SPDX-License-Identifier: Apache-2.0
 * What the files of foreign_toolkit.h share. */
#ifndef CAIRN_TRAIN_FOREIGN_TOOLKIT_PARTS_H
#define CAIRN_TRAIN_FOREIGN_TOOLKIT_PARTS_H

#include "train/foreign_toolkit_keys.h"

/* What decides how other keys are read. */
struct toolkit_model {
    const char *task; /* as model.task */
    size_t blocks;
    bool experts;   /* Wan 2.2 A14B */
    bool high, low; /* which of them are trained */
};

/* model: its files, its kind and its experts. */
/* Of ai-toolkit's scheduler: 5 for Wan 2.2, 3 for Wan 2.1. */
const char *toolkit_shift(const struct toolkit_model *m);
int toolkit_add_model(const struct toolkit *t, struct toolkit_model *m);
/* network: rank, targets, and the LoRA to start from. */
int toolkit_add_network(const struct toolkit *t, const struct toolkit_model *m);
/* train: optimizer, learning rate, timesteps. */
int toolkit_add_train(const struct toolkit *t, const struct toolkit_model *m);
/* sample. */
int toolkit_add_samples(const struct toolkit *t, const struct toolkit_model *m);

#endif
