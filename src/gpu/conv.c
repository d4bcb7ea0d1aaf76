/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/conv.h"

#include "base/int.h"
#include "gpu/backend.h"
#include "gpu/conv_way.h"
#include <string.h>

static k_i64 volume(struct conv_size s)
{
    return s.t * s.h * s.w;
}

void conv_set_frames(struct conv_args *a, k_i64 frame)
{
    k_i64 at = frame * a->stride.t - a->pad.t, before = a->past ? -a->past_frames : 0;
    k_i64 first = before > at ? before - at : 0,
          end = a->in.t - at < a->kernel.t ? a->in.t - at : a->kernel.t;
    a->first_t = first < end ? first : 0;
    a->count_t = first < end ? end - first : 1; /* one that sees zeros, if there is none */
}

/* x is its own rows. */
static bool is_plain(const struct conv_args *a)
{
    return volume(a->kernel) == 1 && volume(a->stride) == 1 && !a->pad.t && !a->pad.h && !a->pad.w &&
           !a->double_size && a->in.t >= a->out.t && a->in.h == a->out.h && a->in.w == a->out.w;
}

/* ---- rows and a matmul ---- */

/* Large enough for matmuls to be fast.  On the CPU, about what its caches hold. */
static size_t piece_bytes(const struct gpu_info *device)
{
    return device->api == GPU_API_HOST ? (size_t)4 << 20 : (size_t)64 << 20;
}

/* Pixels per piece, of one frame. */
static k_i64 piece_of(const struct conv_args *a, size_t row_bytes, size_t bytes)
{
    enum { WHOLE = 256 };
    k_i64 most = a->out.h * a->out.w, fit = (k_i64)(bytes / row_bytes);
    if (fit >= most)
        return most;
    return fit > WHOLE ? fit / WHOLE * WHOLE : fit;
}

static size_t row_bytes_of(enum gpu_storage storage, const struct conv_args *a)
{
    return (size_t)(volume(a->kernel) * a->channels) * conv_number_size(storage);
}

static size_t rows_bytes(const struct gpu_info *device, enum gpu_storage storage, const struct conv_args *a)
{
    size_t row = row_bytes_of(storage, a);
    return (size_t)piece_of(a, row, at_least(piece_bytes(device), row)) * row;
}

static int gather(const struct conv *c, const struct conv_args *a, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct gpu_grid grid = { (unsigned)div_up((size_t)a->count * align_up((size_t)a->channels, 8), CONV_STEP),
                             (unsigned)(a->count_t * a->kernel.h * a->kernel.w), 1 };
    return gpu_kernel(c->g, "conv_rows", c->storage, &k, err) ||
                   gpu_launch(c->g, c->stream, k, grid, a, sizeof(*a), err)
               ? -1
               : 0;
}

/* Pixels first … first + count of the result, whose rows begin at `rows`. */
static int multiply(const struct conv *c, const struct conv_args *a, const void *rows,
                    struct cairn_error *err)
{
    size_t size = conv_number_size(c->storage), at = conv_result_at(c->storage, a);
    bool adds_f32 = a->y_f32 && a->residual;
    k_i64 frame = a->kernel.h * a->kernel.w * a->channels;
    struct gemm_args g = {
        .c = (char *)a->y + at,
        .a = rows,
        .b = (const char *)a->w + (size_t)(a->first_t * frame) * size,
        .residual = a->residual && !adds_f32 ? (const char *)a->residual + at : NULL,
        .bias = a->bias,
        .m = a->count,
        .n = a->filters,
        .k = a->count_t * frame,
        .a_stride = a->count_t * frame,
        .b_stride = a->kernel.t * frame,
        .c_stride = a->filters,
        .alpha = 1,
        .beta = adds_f32 ? 1 : 0,
        .b_transposed = 1,
        .c_f32 = a->y_f32,
    };
    return blas_gemm(c->blas, c->stream, c->storage, &g, 1, err);
}

static int by_rows(const struct conv *c, const struct conv_args *args, struct cairn_error *err)
{
    struct conv_args copy = *args, *a = &copy;
    size_t row = row_bytes_of(c->storage, a);
    k_i64 area = a->out.h * a->out.w, piece = piece_of(a, row, c->work_bytes);
    if (!piece)
        return cairn_fail(err, CAIRN_EUSAGE, "a convolution needs a workspace of %zu bytes, but has %zu", row,
                          c->work_bytes);
    a->rows = c->work;
    for (k_i64 frame = 0; frame < a->out.t; frame++) {
        conv_set_frames(a, frame);
        for (k_i64 at = 0; at < area; at += piece) {
            a->first = frame * area + at;
            a->count = area - at < piece ? area - at : piece;
            if (gather(c, a, err) || multiply(c, a, a->rows, err))
                return -1;
        }
    }
    return 0;
}

static bool fits_all(const struct conv *c, const struct conv_args *a)
{
    (void)c, (void)a;
    return true;
}

static bool fits_plain(const struct conv *c, const struct conv_args *a)
{
    (void)c;
    return is_plain(a);
}

static int by_matmul(const struct conv *c, const struct conv_args *args, struct cairn_error *err)
{
    struct conv_args a = *args;
    a.first_t = 0, a.count_t = 1;
    a.first = 0, a.count = volume(a.out);
    return multiply(c, &a, a.x, err);
}

/* ---- matrix cores ---- */

/* Filters of a tile: as few as possible outside. */
static k_i64 mma_size(const struct conv *c, const struct conv_args *a)
{
    if (c->only)
        return strstr(c->only, "96") ? 96 : 128;
    return div_up((size_t)a->filters, 96) * 96 < div_up((size_t)a->filters, 128) * 128 ? 96 : 128;
}

static bool fits_mma(const struct conv *c, const struct conv_args *a)
{
    uintptr_t all = (uintptr_t)a->x | (uintptr_t)a->past | (uintptr_t)a->w;
    return (c->only || c->g->info.api != GPU_API_HOST) && gpu_has_mma(c->g) && c->storage != GPU_F32 &&
           a->channels % 8 == 0 && all % 16 == 0 && volume(a->out) < INT32_MAX;
}

static int by_mma(const struct conv *c, const struct conv_args *a, struct cairn_error *err)
{
    k_i64 size = mma_size(c, a);
    const struct gpu_kernel *k;
    struct gpu_grid grid = { .x = (unsigned)(div_up((size_t)volume(a->out), CONV_MMA_PIXELS) *
                                             div_up((size_t)a->filters, (size_t)size)) };
    return gpu_kernel(c->g, size == 96 ? "conv_mma_96" : "conv_mma_128", c->storage, &k, err) ||
                   gpu_launch(c->g, c->stream, k, grid, a, sizeof(*a), err)
               ? -1
               : 0;
}

/* ---- the choice ---- */

static const struct conv_way plain = { "matmul", fits_plain, by_matmul };
static const struct conv_way mma = { "conv_mma", fits_mma, by_mma };
static const struct conv_way rows = { "conv_rows", fits_all, by_rows };
/* The first that fits; the last always does. */
static const struct conv_way *const ways[] = { &plain, &conv_by_cpu, &conv_by_wgmma, &mma, &rows };

static bool is_meant(const struct conv_way *way, const char *only)
{
    return !only || !strncmp(only, way->name, strlen(way->name));
}

static const struct conv_way *choose(const struct conv *c, const struct conv_args *a)
{
    for (size_t i = 0; i < ARRAY_LEN(ways); i++)
        if (is_meant(ways[i], c->only) && ways[i]->fits(c, a))
            return ways[i];
    return NULL;
}

size_t conv_workspace(const struct conv *c, const struct conv_args *a)
{
    return choose(c, a) == &rows ? rows_bytes(&c->g->info, c->storage, a) : 0;
}

size_t conv_workspace_on(const struct gpu_info *device, enum gpu_storage storage, const struct conv_args *a)
{
    bool fused = device->api == GPU_API_HOST ||
                 (gpu_info_has_mma(device) && storage != GPU_F32 && a->channels % 8 == 0);
    return is_plain(a) || fused ? 0 : rows_bytes(device, storage, a);
}

int conv_forward(const struct conv *c, const struct conv_args *a, struct cairn_error *err)
{
    if (volume(a->out) <= 0 || a->channels <= 0 || a->filters <= 0)
        return cairn_fail(err, CAIRN_EUSAGE, "a convolution with an empty result");
    if (a->y_f32 && a->residual && a->residual != a->y)
        return cairn_fail(err, CAIRN_EUSAGE, "a convolution adds to an f32 result in place only");
    const struct conv_way *way = choose(c, a);
    if (!way)
        return cairn_fail(err, CAIRN_EUSAGE, "no convolution by %s of this shape", c->only);
    return way->run(c, a, err);
}
