/* SPDX-License-Identifier: Apache-2.0
 * Softmax over rows.  K_WHOLE_GROUPS groups. */
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

#endif
