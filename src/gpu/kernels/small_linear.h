/* SPDX-License-Identifier: Apache-2.0
 * A linear layer of few rows, such as an embedding of times: the time is that of reading w. */
#ifndef CAIRN_GPU_KERNELS_SMALL_LINEAR_H
#define CAIRN_GPU_KERNELS_SMALL_LINEAR_H

#include "gpu/kernels/types.h"

/* A group makes so many columns of so many rows of y, and reads its part of w once. */
#define SMALL_LINEAR_ROWS 8
#define SMALL_LINEAR_COLUMNS 32
#define SMALL_LINEAR_GROUPS(n, per_group) (((n) + (per_group)-1) / (per_group))

/* small_linear: y = x wᵀ + bias, or silu(x) wᵀ + bias.  x is rows × in, w out × in.  The grid is
 * SMALL_LINEAR_GROUPS(out, SMALL_LINEAR_COLUMNS) groups in x, SMALL_LINEAR_GROUPS(rows, SMALL_LINEAR_ROWS) in y. */
struct small_linear_args {
    struct k_fault *fault;
    float *y;
    const float *x;
    const void *w;
    const float *bias; /* may be NULL */
    k_i64 rows, in, out;
    k_u32 silu;
};

#endif
