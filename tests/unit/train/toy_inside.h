/* SPDX-License-Identifier: Apache-2.0
 * What the files of the toy model share: toy_model.c has parameters and files, toy_work.c workspaces and passes. */
#ifndef CAIRN_TESTS_UNIT_TRAIN_TOY_INSIDE_H
#define CAIRN_TESTS_UNIT_TRAIN_TOY_INSIDE_H

#include "toy_model.h"

/* Of a linear of the blocks, counted from the first block on. */
size_t toy_linear_in(const struct toy *m, size_t linear);
size_t toy_linear_out(const struct toy *m, size_t linear);

struct work_bytes toy_work_bytes(const struct model *m, const struct work_options *o);
int toy_work_open(struct model *m, const struct work_options *o, struct work **out, struct cairn_error *err);
void toy_work_close(struct work *work);
int toy_run(struct work *work, const struct model_pass *p, const struct weights *grads,
            struct cairn_error *err);
int toy_loss(struct work *work, size_t slot, double *sum, double *units, struct cairn_error *err);

#endif
