/* SPDX-License-Identifier: Apache-2.0
 * Softmax over rows, and the loss of a classifier.  Each group takes a row. */
#ifndef CAIRN_GPU_KERNELS_SOFTMAX_H
#define CAIRN_GPU_KERNELS_SOFTMAX_H

#include "gpu/kernels/types.h"

/* softmax: y = softmax(scale x).  With `causal` the rows come in matrices of rows_per_matrix; row r of a matrix sees
 * the columns up to r + columns - rows_per_matrix, the others become 0. */
struct softmax_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    k_i64 rows, columns, rows_per_matrix;
    float scale;
    k_u32 causal;
};

/* softmax_backward: dx = scale y (dy - sum(y dy)); where y is 0, so is dx. */
struct softmax_backward_args {
    struct k_fault *fault;
    void *dx;
    const void *dy, *y;
    k_i64 rows, columns;
    float scale;
};

/* cross_entropy: loss[r] = -sum_c q[c] log softmax(logits[r])[c], where q is 1 at the target; with smoothing s it is
 * 1 - s there, plus s / columns everywhere.  dlogits = (softmax - q) * scale.  Rows whose target is `ignore` have
 * no loss and no gradient.  A target that is neither `ignore` nor a column gives NaN.  Rows lie `stride` numbers
 * apart; the gradient of what is past `columns` is 0. */
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
