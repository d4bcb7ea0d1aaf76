/* SPDX-License-Identifier: Apache-2.0
 * Normalisation over the last dimension.  x is rows × columns; K_NORM_GROUPS groups.
 *
 * y = xhat * (w + w_plus) + b, where w and b are vectors of `columns` numbers.  Modulated layers (a scale and a
 * shift per sample, as in diffusion transformers) have one w and b for every `rows_per_w` rows, and w_plus 1;
 * affine layers have one for all (rows_per_w 0).  NULL means 1 and 0. */
#ifndef CAIRN_GPU_KERNELS_NORM_H
#define CAIRN_GPU_KERNELS_NORM_H

#include "gpu/kernels/types.h"

/* Of many rows a group takes more: it reads w and b once. */
#define K_NORM_ROWS(rows, columns)                                  \
    (K_WHOLE_ROWS(columns) * ((columns) > 4096 || (rows) < 4096 ? 1 \
                              : (rows) < 8192                   ? 2 \
                              : (rows) < 16384                  ? 4 \
                                                                : 8))
#define K_NORM_GROUPS(rows, columns) (((rows) + K_NORM_ROWS(rows, columns) - 1) / K_NORM_ROWS(rows, columns))

/* layer_norm, rms_norm.  norm_wide: x is f32, a mean of NULL makes it an RMS norm, and each row has a group. */
struct norm_args {
    struct k_fault *fault;
    void *y;            /* out */
    float *mean, *rstd; /* out, one per row; mean is not touched by rms_norm */
    const void *x;
    const float *w, *b;
    k_i64 rows, columns, rows_per_w;
    float epsilon, w_plus;
};

/* norm_silu: y = silu(x / max(|x|, 1e-12) sqrt(columns) w), as in the VAEs of Wan; y may be x.  norm_silu_wide: x
 * is f32, and y is not x.  NORM_SILU_GROUPS groups. */
#define NORM_SILU_ROWS(columns) ((columns) > 1024 ? 8 : (columns) > 256 ? 64 : 256) /* of a group */
#define NORM_SILU_GROUPS(rows, columns) (((rows) + NORM_SILU_ROWS(columns) - 1) / NORM_SILU_ROWS(columns))
struct norm_silu_args {
    struct k_fault *fault;
    void *y; /* out */
    const void *x;
    const float *w;
    k_i64 rows, columns;
};

/* layer_norm_backward, rms_norm_backward: dx is the gradient of x; K_WHOLE_GROUPS groups.  norm_wide_backward: x and dx
 * are f32, and each row has a group. */
struct norm_backward_args {
    struct k_fault *fault;
    void *dx;
    const void *dy, *x;
    const float *w, *mean, *rstd; /* as the forward kernel left them */
    k_i64 rows, columns, rows_per_w;
    float w_plus;
    k_u32 add; /* to what is in dx already */
};

/* norm_backward_w: the gradients of w and b in parts, for fold (types.h); a set has rows_per_w rows. */
struct norm_weights_args {
    struct k_fault *fault;
    float *dw, *db; /* [set][part][columns]; db may be NULL */
    const void *dy, *x;
    const float *mean, *rstd; /* mean is NULL for rms_norm */
    k_i64 rows, columns, rows_per_w, rows_per_part;
};

#endif
