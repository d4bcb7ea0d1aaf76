/* SPDX-License-Identifier: Apache-2.0
 * Convolution over time, height and width, channels last.
 *
 * x is [frames][height][width][channels], so that a pixel is a row; y likewise.  A pixel of the result sees
 * kernel.t × kernel.h × kernel.w pixels of x, beginning at its own place times the stride minus the padding; a causal
 * layer has kernel.t - 1 frames of padding in front and none behind.  Frames before the first are the last ones of
 * `past`, the clip so far; beyond it, and outside of height and width, there are zeros.  With double_size the kernel
 * sees every pixel of x twice in height and in width.
 *
 * Every kernel for convolutions takes this struct, so that one can stand in for another. */
#ifndef CAIRN_GPU_KERNELS_CONV_H
#define CAIRN_GPU_KERNELS_CONV_H

#include "gpu/kernels/types.h"

struct conv_size {
    k_i64 t, h, w;
};

struct conv_args {
    struct k_fault *fault;
    void *y;              /* out; f32 where y_f32 */
    const void *x, *past; /* past is [past_frames][height][width][channels]; may be NULL */
    const void *w;        /* [filters][kernel.t][kernel.h][kernel.w][channels] */
    const void *residual; /* as y, and added to it; may be NULL; where y_f32 it is NULL or y */
    const float *bias;    /* for each filter; may be NULL */
    void *rows;           /* of conv_rows: out */
    k_i64 past_frames, channels, filters;
    struct conv_size in, kernel, stride, pad, out; /* pad: in front */
    k_i64 first, count;                            /* of conv_rows: pixels of the result */
    k_i64 first_t, count_t;                        /* of conv_rows: the kernel's frames */
    k_u32 double_size;
    k_u32 y_f32;
};

/* conv_rows: what each pixel of the result sees, as a row [count_t][kernel.h][kernel.w][channels] for a matmul.
 * Groups (CONV_STEP numbers of pixels × channels each, the kernel's pixels). */
enum { CONV_STEP = 4096 };

/* conv_mma_N: groups (tiles of CONV_MMA_PIXELS pixels and N filters, filters first). */
enum { CONV_MMA_PIXELS = 128 };

/* conv_wgmma_N: tiles of CONV_WGMMA_PIXELS pixels and N filters, by as many groups as there are multiprocessors.
 * A pixel's place in x is that in the tile, times the stride, minus the padding.  Tiles are blocks of 8 × 8 pixels,
 * blocks_across of them side by side.  With double_size a tile has the pixels of one class: those whose row and
 * column are even or odd. */
#if defined(K_CUDA) /* NVRTC passes over the attribute */
#define CONV_ALIGNED __align__(64)
#else
#define CONV_ALIGNED __attribute__((aligned(64)))
#endif
struct CONV_ALIGNED conv_map { /* what the driver makes of a tensor for copies of boxes */
    k_u64 words[16];
};
struct conv_wgmma_args {
    struct k_fault *fault;
    struct conv_map x, past, w;
    void *y; /* out */
    const void *residual;
    const float *bias;
    int channels, filters, past_frames; /* past_frames 0: there is no past */
    int in_t, kernel_t, kernel_h, kernel_w, stride_t, stride_h, stride_w, pad_t, pad_h, pad_w, out_t, out_h,
        out_w;
    int double_size, y_f32;
    int has_halo; /* a patch of x is for all of the kernel's pixels; else for one */
    int patch_w, patch_h, blocks_across;
    int tiles_n, tiles_w, tiles_h, classes; /* classes: 4 with double_size, else 1 */
};
enum { CONV_WGMMA_PIXELS = 256, CONV_WGMMA_PATCH = 340 /* pixels at most */ };

/* patch_columns: x is [channels][in.t][in.h][in.w] and each patch becomes a column of [channels × patch][patches].
 * Groups (PATCH_STEP patches each, rows of columns). */
struct patch_columns_args {
    struct k_fault *fault;
    void *columns; /* out */
    const void *x;
    k_i64 channels, count;
    struct conv_size in, patch;
};
enum { PATCH_STEP = 1024 };

#endif
