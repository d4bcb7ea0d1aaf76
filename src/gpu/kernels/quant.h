/* SPDX-License-Identifier: Apache-2.0
 * Numbers of 8 bits with f32 factors, to and from the storage format.
 *
 * A matrix has a factor for each row (per_row 1) or one for all (per_row 0).  Factors for blocks of 64 columns are
 * those of the rows of the same matrix seen as rows * columns / 64 rows of 64. */
#ifndef CAIRN_GPU_KERNELS_QUANT_H
#define CAIRN_GPU_KERNELS_QUANT_H

#include "gpu/kernels/types.h"

/* dequantise_e4m3 (no infinity, 0x7f is NaN, at most 448), dequantise_e5m2, dequantise_int8:
 * y = scale x.  K_ROW_GROUPS groups. */
struct dequantise_args {
    struct k_fault *fault;
    void *y;
    const void *x; /* bytes */
    const float *scale;
    k_i64 rows, columns, per_row;
};

/* quantise_int8: scale = the row's largest |x| / 127; y = x / scale to the nearest, ties to even.  quantise_e4m3: the
 * same with 448.  A row with NaN or Inf gets an infinite scale, one whose scale is 0 codes of 0.  Each group takes a
 * row. */
struct quantise_args {
    struct k_fault *fault;
    void *y; /* bytes */
    float *scale;
    const void *x;
    k_i64 rows, columns;
};

#endif
