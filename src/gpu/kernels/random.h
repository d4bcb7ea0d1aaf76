/* SPDX-License-Identifier: Apache-2.0
 * Random numbers that depend on seed, stream and place only: the same bits on every device, before they are rounded
 * to the storage format.  Numbers 4j … 4j+3 come from the four words of Philox4x32-10 with the key `seed` and the
 * counter (j, stream).  K_GROUPS(n) groups. */
#ifndef CAIRN_GPU_KERNELS_RANDOM_H
#define CAIRN_GPU_KERNELS_RANDOM_H

#include "gpu/kernels/types.h"

/* random_uniform: y = shift + scale u, u in (0, 1).  random_normal: y = shift + scale z; words 0 and 1 make the first
 * two numbers, 2 and 3 the others. */
struct random_args {
    struct k_fault *fault;
    void *y;
    k_i64 n;
    k_u64 seed, stream;
    float shift, scale;
};

/* dropout: y = scale x where the word is not below `threshold` (the share that is dropped, of 2^32), else 0.  The
 * gradient is the same kernel with dy for x.  y may be x. */
struct dropout_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    k_i64 n;
    k_u64 seed, stream;
    k_u32 threshold;
    float scale;
};

#endif
