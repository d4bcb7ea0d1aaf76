/* SPDX-License-Identifier: Apache-2.0
 * Kernels that do the same to every number.  Each takes arrays of n numbers and K_GROUPS(n) groups.  The output may
 * be one of the inputs. */
#ifndef CAIRN_GPU_KERNELS_ELEMENTWISE_H
#define CAIRN_GPU_KERNELS_ELEMENTWISE_H

#include "gpu/kernels/types.h"

/* fill: y = value, rounded. */
struct fill_args {
    struct k_fault *fault;
    void *y;
    k_i64 n;
    float value;
};

/* copy (bit for bit), gelu (the tanh form), gelu_erf (the exact one), silu */
struct map_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    k_i64 n;
};

/* widen: exact. */
struct widen_args {
    struct k_fault *fault;
    float *y;
    const void *x;
    k_i64 n;
};

/* narrow: to the nearest, ties to even. */
struct narrow_args {
    struct k_fault *fault;
    void *y;
    const float *x;
    k_i64 n;
};

/* widen_scaled: x factor.  narrow_scaled: the same, to the nearest. */
struct widen_scaled_args {
    struct k_fault *fault;
    float *y;
    const void *x;
    k_i64 n;
    float factor;
};
struct narrow_scaled_args {
    struct k_fault *fault;
    void *y;
    const float *x;
    k_i64 n;
    float factor;
};

/* add: x + z; mul: x z; add_scaled: x + factor z; scale: factor x, without a z.  Where `by` is given the factor is
 * also multiplied by the number on the device that it points to. */
struct combine_args {
    struct k_fault *fault;
    void *y;
    const void *x, *z;
    const float *by;
    k_i64 n;
    float factor;
};

/* gelu_backward, silu_backward: dx = dy f'(x). */
struct map_backward_args {
    struct k_fault *fault;
    void *dx;
    const void *dy, *x;
    k_i64 n;
};

/* swiglu: y = silu(gate) up. */
struct swiglu_args {
    struct k_fault *fault;
    void *y;
    const void *gate, *up;
    k_i64 n;
};
/* geglu: y = factor gelu(gate) up, where a row of x is gate and then up, `columns` numbers each; y is not x.
 * K_ROW_GROUPS groups. */
struct geglu_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    k_i64 rows, columns;
    float factor;
};
struct swiglu_backward_args {
    struct k_fault *fault;
    void *dgate, *dup;
    const void *dy, *gate, *up;
    k_i64 n;
};

#endif
