/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/kernels/elementwise.h"
#include "gpu/kernels/move.h"
#include "gpu/kernels/softmax.h"
#include "gpu/kernels/vae.h"
#include "nn/nn_inside.h"
#include "nn/vae_inside.h"

static struct pixels_args pixels_args_of(const struct vae_activation *s, size_t patch)
{
    return (struct pixels_args){ .frames = (k_i64)s->frames,
                                 .height = (k_i64)s->height,
                                 .width = (k_i64)s->width,
                                 .channels = (k_i64)s->channels,
                                 .patch = (k_i64)patch };
}

int vae_pixels_pack(struct nn *nn, void *x, const float *pixels, const struct vae_activation *shape,
                    size_t patch, struct cairn_error *err)
{
    struct pixels_args args = pixels_args_of(shape, patch);
    size_t n = vae_numbers(shape);
    args.x = x;
    args.pixels = (float *)(uintptr_t)pixels;
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(n / shape->channels, shape->channels) };
    return NN_LAUNCH(nn, "pixels_pack", grid, args, NN_OUT(x, n, 2), err);
}

int vae_pixels_unpack(struct nn *nn, float *pixels, const float *x, const struct vae_activation *shape,
                      size_t patch, struct cairn_error *err)
{
    struct pixels_args args = pixels_args_of(shape, patch);
    size_t n = shape->frames * shape->height * shape->width * patch * patch;
    args.x = (void *)(uintptr_t)x;
    args.pixels = pixels;
    struct nn_launch launch = { .kernel = "pixels_unpack",
                                .storage = GPU_F32,
                                .grid = nn_grid_over(n),
                                .args = &args,
                                .args_size = sizeof(args),
                                NN_OUT(pixels, n * 3, 2) };
    return nn_launch(nn, &launch, err);
}

int vae_shortcut(struct nn *nn, const struct vae_shortcut *s, struct cairn_error *err)
{
    const struct vae_activation *y = s->shape;
    struct shortcut_args args = { .y = s->y,
                                  .x = s->x,
                                  .frames = (k_i64)y->frames,
                                  .height = (k_i64)y->height,
                                  .width = (k_i64)y->width,
                                  .out = (k_i64)y->channels,
                                  .in = (k_i64)s->in,
                                  .by_time = (k_i64)s->by_time,
                                  .by_space = (k_i64)s->by_space,
                                  .lead = (k_i64)s->lead };
    size_t n = vae_numbers(y);
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(n / y->channels, y->channels) };
    struct nn_launch launch = { .kernel = s->up ? "shortcut_up" : "shortcut_down",
                                .storage = GPU_F32,
                                .grid = grid,
                                .args = &args,
                                .args_size = sizeof(args),
                                NN_OUT(s->y, n, 3) };
    return nn_launch(nn, &launch, err);
}

int vae_split(struct nn *nn, void *y, const float *x, size_t rows, size_t channels, struct cairn_error *err)
{
    struct split_args args = { .y = y, .x = x, .rows = (k_i64)rows, .channels = (k_i64)channels };
    size_t n = rows * channels;
    return NN_LAUNCH(nn, "split", nn_grid_over(n), args, NN_OUT(y, 2 * n, 2), err);
}

int vae_add(struct nn *nn, float *y, const float *x, size_t n, struct cairn_error *err)
{
    struct combine_args args = { .y = y, .x = y, .z = x, .n = (k_i64)n };
    struct nn_launch launch = { .kernel = "add",
                                .storage = GPU_F32,
                                .grid = nn_grid_over(n),
                                .args = &args,
                                .args_size = sizeof(args),
                                NN_OUT(y, n, 3) };
    return nn_launch(nn, &launch, err);
}

int vae_narrow(struct nn *nn, void *y, const float *x, size_t n, float factor, struct cairn_error *err)
{
    struct narrow_scaled_args args = { .y = y, .x = x, .n = (k_i64)n, .factor = factor };
    return NN_LAUNCH(nn, "narrow_scaled", nn_grid_over(n), args, NN_OUT(y, n, 3), err);
}

int vae_widen(struct nn *nn, float *y, const void *x, size_t n, float factor, struct cairn_error *err)
{
    struct widen_scaled_args args = { .y = y, .x = x, .n = (k_i64)n, .factor = factor };
    struct nn_launch launch = { .kernel = "widen_scaled",
                                .storage = nn->storage,
                                .grid = nn_grid_over(n),
                                .args = &args,
                                .args_size = sizeof(args),
                                .f32_out = true,
                                NN_OUT(y, n, 3) };
    return nn_launch(nn, &launch, err);
}

int vae_softmax(struct nn *nn, const struct vae_softmax *s, struct cairn_error *err)
{
    struct softmax_args args = { .y = nn->storage == GPU_F32 ? s->y : s->x,
                                 .x = s->x,
                                 .rows = (k_i64)s->rows,
                                 .columns = (k_i64)s->columns,
                                 .rows_per_matrix = (k_i64)s->rows,
                                 .scale = s->scale };
    struct nn_launch launch = { .kernel = "softmax",
                                .storage = GPU_F32,
                                .grid = { .x = (unsigned)K_WHOLE_GROUPS(s->rows, s->columns) },
                                .args = &args,
                                .args_size = sizeof(args),
                                NN_OUT(args.y, s->rows * s->columns, 2) };
    if (nn_launch(nn, &launch, err))
        return -1;
    return nn->storage == GPU_F32 ? 0 : vae_narrow(nn, s->y, s->x, s->rows * s->columns, s->factor, err);
}

int vae_split_frames(struct nn *nn, void *y, const void *x, size_t frames, size_t rows, size_t channels,
                     struct cairn_error *err)
{
    struct permute_args args = {
        .y = y,
        .x = x,
        .n = { (k_i64)frames, 2, (k_i64)rows, (k_i64)channels },
        .step = { (k_i64)(rows * channels * 2), (k_i64)channels, (k_i64)channels * 2 },
    };
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(frames * 2 * rows, channels) };
    return NN_LAUNCH(nn, "permute", grid, args, NN_OUT(y, frames * 2 * rows * channels, 2), err);
}
