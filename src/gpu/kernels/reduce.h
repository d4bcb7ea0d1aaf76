/* SPDX-License-Identifier: Apache-2.0
 * Statistics of an array in one pass over it: `stats` leaves one part for each of its K_GROUPS(n) groups, and
 * stats_fold, one group, makes one of them. */
#ifndef CAIRN_GPU_KERNELS_REDUCE_H
#define CAIRN_GPU_KERNELS_REDUCE_H

#include "gpu/kernels/types.h"

struct k_stats {
    k_i64 nan, infinite, zero; /* how many */
    float least, most;         /* of the finite ones; +infinity and -infinity when there are none */
    float sum, square;         /* of the finite ones */
};

struct stats_args {
    struct k_fault *fault;
    struct k_stats *parts;
    const void *x;
    k_i64 n;
};

struct stats_fold_args {
    struct k_fault *fault;
    struct k_stats *y;
    const struct k_stats *parts;
    k_i64 n; /* parts */
};

#endif
