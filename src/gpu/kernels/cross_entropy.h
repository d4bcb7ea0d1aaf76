/* SPDX-License-Identifier: Apache-2.0
 * The loss of a classifier. */
#ifndef CAIRN_GPU_KERNELS_CROSS_ENTROPY_H
#define CAIRN_GPU_KERNELS_CROSS_ENTROPY_H

#include "gpu/kernels/types.h"

/* cross_entropy: loss[r] = -sum_c q[c] log softmax(logits[r])[c], where q is 1 at the target; with smoothing s it is
 * 1 - s there, plus s / columns everywhere.  dlogits = (softmax - q) * scale.  Rows whose target is `ignore` have
 * no loss and no gradient.  A target that is neither `ignore` nor a column gives NaN.  Rows lie `stride` numbers
 * apart; the gradient of what is past `columns` is 0.  Each group takes a row. */
struct cross_entropy_args {
    struct k_fault *fault;
    float *loss;
    void *dlogits; /* may be logits; NULL: not wanted */
    const void *logits;
    const int *targets;
    k_i64 rows, columns, stride;
    float smoothing, scale;
    int ignore;
};

#endif
