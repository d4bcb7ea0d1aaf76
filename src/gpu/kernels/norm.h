/* SPDX-License-Identifier: Apache-2.0
 * Normalisation over the last dimension.  x is rows × columns; each group takes a row.
 *
 * y = xhat * (w + w_plus) + b, where w and b are vectors of `columns` numbers.  Modulated layers (a scale and a
 * shift per sample, as in diffusion transformers) have one w and b for every `rows_per_w` rows, and w_plus 1;
 * affine layers have one for all (rows_per_w 0).  NULL means 1 and 0. */
#ifndef CAIRN_GPU_KERNELS_NORM_H
#define CAIRN_GPU_KERNELS_NORM_H

#include "gpu/kernels/types.h"

struct norm_args {
    struct k_fault *fault;
    void *y;            /* out */
    float *mean, *rstd; /* out, one per row; mean is not touched by rms_norm */
    const void *x;
    const float *w, *b;
    k_i64 rows, columns, rows_per_w;
    float epsilon, w_plus;
};

/* dx = the gradient of x; dw and db are summed over the rows that share them in a second kernel, norm_fold, from
 * `parts` rows of partial sums: part p of norm_backward_w has the sums over its share of rows. */
struct norm_backward_args {
    struct k_fault *fault;
    void *dx;
    const void *dy, *x;
    const float *w, *mean, *rstd;
    k_i64 rows, columns, rows_per_w;
    float w_plus;
    k_u32 add; /* to what is in dx already */
};
struct norm_weights_args {
    struct k_fault *fault;
    float *dw, *db; /* [w index][part][columns]; db may be NULL */
    const void *dy, *x;
    const float *mean, *rstd; /* mean is NULL for rms_norm */
    k_i64 rows, columns, rows_per_w, rows_per_part;
};

#endif
