/* SPDX-License-Identifier: Apache-2.0
 * The loss of a regression: the squared distance from a target. */
#ifndef CAIRN_GPU_KERNELS_SQUARE_ERROR_H
#define CAIRN_GPU_KERNELS_SQUARE_ERROR_H

#include "gpu/kernels/types.h"

/* square_error: the sum of (x - target)² for each group's share of a sample, and dx = factor (x - target).  The grid is
 * K_GROUPS(n) groups in x, and the samples in y. */
struct square_error_args {
    struct k_fault *fault;
    float *parts; /* out, [sample][K_GROUPS(n)] */
    void *dx;     /* out; may be x; NULL: not wanted */
    const void *x;
    const float *target;
    k_i64 n; /* numbers of a sample */
    float factor;
};

#endif
