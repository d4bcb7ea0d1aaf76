/* SPDX-License-Identifier: Apache-2.0
 * Convolutions on Hopper: the driver describes the tensors, kernels/conv_mma.sm_90a.k copies boxes of them. */
#include "gpu/conv_way.h"

#include "base/int.h"
#include "gpu/backend.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Filters of a tile, and the cycles that 64 pixels and 16 channels take: few filters wait for shared memory. */
static const struct {
    int filters, cycles;
} sizes[] = { { 32, 24 }, { 96, 48 }, { 128, 64 }, { 160, 80 }, { 192, 96 } };

/* The least time, where groups that end last leave others idle; of the same, the largest tile. */
static int size_for(const struct conv *c, const struct conv_wgmma_args *w)
{
    size_t places = (size_t)w->tiles_w * (size_t)w->tiles_h * (size_t)w->classes * (size_t)w->out_t,
           least = 0;
    int best = 0;
    if (c->only)
        return atoi(strrchr(c->only, '_') + 1);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        size_t tiles = places * div_up((size_t)w->filters, (size_t)sizes[i].filters);
        size_t cycles = div_up(tiles, (size_t)c->g->info.units) * (size_t)sizes[i].cycles;
        if (!best || cycles <= least)
            best = sizes[i].filters, least = cycles;
    }
    return best;
}

static bool is_aligned(const void *p)
{
    return !((uintptr_t)p % 16);
}

static bool is_stride(struct conv_size s, k_i64 n)
{
    return s.h == n && s.w == n;
}

static bool fits(const struct conv *c, const struct conv_args *a)
{
    const char *name = c->only ? c->only : "conv_wgmma_192"; /* all of them compile, or none */
    const struct gpu_kernel *k;
    struct cairn_error why = { 0 };
    if (c->g->info.api != GPU_API_CUDA || !c->g->backend->box_map)
        return false;
    if (a->channels % 8 || a->kernel.h > 3 || a->kernel.w > 3 || !is_aligned(a->x) || !is_aligned(a->past) ||
        !is_aligned(a->w) || !is_aligned(a->y) || !is_aligned(a->residual) || a->filters > INT32_MAX / 64)
        return false;
    if (!is_stride(a->stride, 1) && (!is_stride(a->stride, 2) || a->double_size))
        return false;
    if (!kernel_is_for(kernel_find(name), c->g, c->storage))
        return false;
    c->g->chip_kernels_fail = gpu_kernel(c->g, name, c->storage, &k, &why);
    return !c->g->chip_kernels_fail;
}

/* The patch of a tile, and how the tiles are laid out: with the least that is outside. */
static void set_tiles(struct conv_wgmma_args *w, const struct conv_args *a)
{
    static const int across[] = { 2, 1, 4 };
    size_t times = a->double_size ? 2 : 1, least = 0;
    for (size_t i = 0; i < ARRAY_LEN(across); i++) {
        int wide = 8 * across[i], high = CONV_WGMMA_PIXELS / wide;
        size_t tiles_w = div_up((size_t)a->out.w, (size_t)wide * times),
               tiles_h = div_up((size_t)a->out.h, (size_t)high * times);
        if (least && tiles_w * tiles_h >= least)
            continue;
        least = tiles_w * tiles_h;
        w->blocks_across = across[i];
        w->tiles_w = (int)tiles_w, w->tiles_h = (int)tiles_h;
        w->patch_w = wide, w->patch_h = high;
    }
    w->has_halo = is_stride(a->stride, 1);
    w->classes = (int)(times * times);
    if (w->has_halo) {
        w->patch_w += (int)(a->double_size ? a->kernel.w / 2 : a->kernel.w - 1);
        w->patch_h += (int)(a->double_size ? a->kernel.h / 2 : a->kernel.h - 1);
    }
}

static int map_frames(const struct conv *c, const struct conv_args *a, const void *x, k_i64 frames,
                      const struct conv_wgmma_args *w, struct conv_map *out, struct cairn_error *err)
{
    uint64_t row = (uint64_t)a->channels * 2, line = row * (uint64_t)a->in.w;
    uint32_t sw = (uint32_t)a->stride.w, sh = (uint32_t)a->stride.h;
    struct gpu_box_map map = {
        .at = x,
        .storage = c->storage,
        .rank = 4,
        .sizes = { (uint64_t)a->channels, (uint64_t)a->in.w, (uint64_t)a->in.h, (uint64_t)frames },
        .strides = { row, line, line * (uint64_t)a->in.h },
        .box = { 64, (uint32_t)w->patch_w * sw, (uint32_t)w->patch_h * sh, 1 },
        .steps = { 1, sw, sh, 1 },
    };
    return c->g->backend->box_map(c->g, &map, out, err);
}

static int map_weights(const struct conv *c, const struct conv_args *a, int size, struct conv_map *out,
                       struct cairn_error *err)
{
    uint64_t taps = (uint64_t)(a->kernel.t * a->kernel.h * a->kernel.w), row = (uint64_t)a->channels * 2;
    struct gpu_box_map map = {
        .at = a->w,
        .storage = c->storage,
        .rank = 3,
        .sizes = { (uint64_t)a->channels, taps, (uint64_t)a->filters },
        .strides = { row, row * taps },
        .box = { 64, 1, (uint32_t)size },
        .steps = { 1, 1, 1 },
    };
    return c->g->backend->box_map(c->g, &map, out, err);
}

static int run(const struct conv *c, const struct conv_args *a, struct cairn_error *err)
{
    char name[32];
    const struct gpu_kernel *k;
    struct conv_wgmma_args w = {
        .y = a->y,
        .residual = a->residual,
        .bias = a->bias,
        .channels = (int)a->channels,
        .filters = (int)a->filters,
        .past_frames = a->past ? (int)a->past_frames : 0,
        .in_t = (int)a->in.t,
        .kernel_t = (int)a->kernel.t,
        .kernel_h = (int)a->kernel.h,
        .kernel_w = (int)a->kernel.w,
        .stride_t = (int)a->stride.t,
        .stride_h = (int)a->stride.h,
        .stride_w = (int)a->stride.w,
        .pad_t = (int)a->pad.t,
        .pad_h = (int)a->pad.h,
        .pad_w = (int)a->pad.w,
        .out_t = (int)a->out.t,
        .out_h = (int)a->out.h,
        .out_w = (int)a->out.w,
        .double_size = a->double_size != 0,
        .y_f32 = a->y_f32 != 0,
    };
    set_tiles(&w, a);
    int size = size_for(c, &w);
    w.tiles_n = (int)div_up((size_t)a->filters, (size_t)size);
    snprintf(name, sizeof(name), "conv_wgmma_%d", size);
    size_t tiles =
        (size_t)w.tiles_n * (size_t)w.tiles_w * (size_t)w.tiles_h * (size_t)w.classes * (size_t)w.out_t;
    struct gpu_grid grid = { .x = (unsigned)at_most(tiles, (size_t)c->g->info.units) };
    if (map_frames(c, a, a->x, a->in.t, &w, &w.x, err) || map_weights(c, a, size, &w.w, err) ||
        (w.past_frames && map_frames(c, a, a->past, a->past_frames, &w, &w.past, err)))
        return -1;
    return gpu_kernel(c->g, name, c->storage, &k, err) ||
                   gpu_launch(c->g, c->stream, k, grid, &w, sizeof(w), err)
               ? -1
               : 0;
}

const struct conv_way conv_by_wgmma = { "conv_wgmma", fits, run };
