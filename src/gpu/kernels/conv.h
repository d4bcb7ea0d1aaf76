/* SPDX-License-Identifier: Apache-2.0
 * Convolution over time, height and width as a product of matrices: what the kernel sees at each place becomes a
 * column.
 *
 * x is [channels][frames][height][width].  A place of the result sees kernel_t × kernel_h × kernel_w numbers of each
 * channel, beginning at its own place times the stride minus the padding; a causal layer has kernel_t - 1 frames of
 * padding in front and none behind.  Frames before the first come from `past`, the last frames of the clip so far,
 * or are zeros; outside of height and width there are zeros.
 *
 * columns is [channels × kernel][count], for the places from `first` of the result, counted through frames, height
 * and width: a long clip is done in pieces. */
#ifndef CAIRN_GPU_KERNELS_CONV_H
#define CAIRN_GPU_KERNELS_CONV_H

#include "gpu/kernels/types.h"

struct conv_place {
    k_i64 t, h, w;
};

struct conv_shape {
    k_i64 channels, past_frames;
    struct conv_place in, kernel, stride, pad, out; /* pad: in front */
};

/* conv_columns: groups (CONV_STEP places each, rows of columns). */
struct conv_columns_args {
    struct k_fault *fault;
    void *columns;        /* out */
    const void *x, *past; /* past is [channels][past_frames][height][width]; may be NULL */
    struct conv_shape s;
    k_i64 first, count;
};
/* conv_fold: dx = the sum of the gradients of all columns that saw a number; with `add`, to what is there.  Groups
 * (CONV_STEP numbers of a channel each, channels). */
struct conv_fold_args {
    struct k_fault *fault;
    void *dx; /* out */
    const void *columns;
    struct conv_shape s;
    k_i64 first, count;
    k_u32 add;
};
enum { CONV_STEP = 1024 };

#endif
