/* SPDX-License-Identifier: Apache-2.0
 * What the VAE of a video model needs besides convolutions.  Activations are [frames][height][width][channels]. */
#ifndef CAIRN_GPU_KERNELS_VAE_H
#define CAIRN_GPU_KERNELS_VAE_H

#include "gpu/kernels/types.h"

/* pixels_pack: f32 pixels of three colours to an activation.  Each patch × patch of them becomes one place whose
 * channel is colour * patch * patch + column * patch + row, rounded.  Channels behind these have the rest
 * of each, as far as there are any; those beyond are zero.  pixels_unpack: the way back.
 * `frames`, `height` and `width` are those of the activation.  K_ROW_GROUPS(places, channels) groups, or
 * K_GROUPS(pixels). */
struct pixels_args {
    struct k_fault *fault;
    void *x;       /* the activation: out of pixels_pack */
    float *pixels; /* [frames][height * patch][width * patch][3]: out of pixels_unpack */
    k_i64 frames, height, width, channels, patch;
};

/* split: y[row] = x[row] rounded, `channels` of them, and as many for the rest of it.  K_GROUPS(rows * channels) groups. */
struct split_args {
    struct k_fault *fault;
    void *y; /* out */
    const float *x;
    k_i64 rows, channels;
};

/* Shortcuts of blocks that change the size: y += what x says.  The cells of x that make a place of y, time slowest,
 * then row, then column, are counted as channels, with the channel slowest.
 *
 * shortcut_down: each channel of y gets the mean of `in` * cells / `out` of these; `lead` frames of zeros stand before
 * x.  shortcut_up: each channel of x stands for `out` * cells / `in` of these in y, and the first `lead` frames that x
 * makes are dropped.  Sizes are those of y.  K_ROW_GROUPS(places, out) groups. */
struct shortcut_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    k_i64 frames, height, width, out, in;
    k_i64 by_time, by_space; /* 1 or 2: how many times x is larger, or smaller */
    k_i64 lead;
};

#endif
