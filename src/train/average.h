/* SPDX-License-Identifier: Apache-2.0
 * The moving average of the weights (EMA) in their place, for samples.
 *
 * The trained weights wait in host memory and come back bit for bit; optimizers and their master copies do not notice. */
#ifndef CAIRN_TRAIN_AVERAGE_H
#define CAIRN_TRAIN_AVERAGE_H

#include "nn/model.h"
#include "train/optim.h"

struct average;
/* The weights of each set become their average.  Call average_drop even if it fails. */
int average_use(const struct model *m, struct optim *const optim[MODEL_SETS], struct average **out,
                struct cairn_error *err);
/* Puts the trained weights back; accepts NULL.  Fails only if the device does. */
int average_drop(struct average *a, struct cairn_error *err);
/* The host memory that it needs for a set. */
size_t average_bytes(const struct params *p, enum gpu_storage storage);

#endif
