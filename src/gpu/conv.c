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

static size_t number_size(enum gpu_storage storage)
{
    return storage == GPU_F32 ? 4 : 2;
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
    return (size_t)(volume(a->kernel) * a->channels) * number_size(storage);
}

static size_t rows_bytes(const struct gpu_info *device, enum gpu_storage storage, const struct conv_args *a)
{
    size_t row = row_bytes_of(storage, a);
    return (size_t)piece_of(a, row, at_least(piece_bytes(device), row)) * row;
}

/* The kernel's frames that see more than zeros from a frame of the result. */
static void set_frames(struct conv_args *a, k_i64 frame)
{
    k_i64 at = frame * a->stride.t - a->pad.t, before = a->past ? -a->past_frames : 0;
    k_i64 first = before > at ? before - at : 0,
          end = a->in.t - at < a->kernel.t ? a->in.t - at : a->kernel.t;
    a->first_t = first < end ? first : 0;
    a->count_t = first < end ? end - first : 1; /* one that sees zeros, if there is none */
}

/* On the CPU: rows from the clip by memcpy, as long as what the kernel sees side by side is so in x. */
struct gather {
    const struct conv_args *a;
    size_t size; /* bytes of a number */
};
enum { GATHER_PIXELS = 16 };

/* What a pixel of the result sees of one row of x; `to` has room for kernel.w pixels. */
static void gather_line(const struct gather *g, const char *line, k_i64 column, char *to)
{
    const struct conv_args *a = g->a;
    size_t pixel = (size_t)a->channels * g->size;
    k_i64 begin = column * a->stride.w - a->pad.w, wide = a->in.w << a->double_size;
    if (begin >= 0 && begin + a->kernel.w <= wide && !a->double_size) {
        memcpy(to, line + (size_t)begin * pixel, (size_t)a->kernel.w * pixel);
        return;
    }
    for (k_i64 k = 0; k < a->kernel.w; k++, to += pixel)
        if (begin + k < 0 || begin + k >= wide)
            memset(to, 0, pixel);
        else
            memcpy(to, line + (size_t)((begin + k) >> a->double_size) * pixel, pixel);
}

static void gather_pixel(const struct gather *g, k_i64 place, char *to)
{
    const struct conv_args *a = g->a;
    size_t bytes = (size_t)(a->kernel.w * a->channels) * g->size;
    size_t line = (size_t)(a->in.w * a->channels) * g->size;
    k_i64 column = place % a->out.w, row = place / a->out.w % a->out.h, frame = place / a->out.w / a->out.h;
    for (k_i64 kt = a->first_t; kt < a->first_t + a->count_t; kt++) {
        k_i64 t = frame * a->stride.t + kt - a->pad.t;
        const char *x = t >= a->in.t                         ? NULL
                        : t >= 0                             ? a->x
                        : a->past && t + a->past_frames >= 0 ? a->past
                                                             : NULL;
        t += t < 0 ? a->past_frames : 0;
        for (k_i64 kh = 0; kh < a->kernel.h; kh++, to += bytes) {
            k_i64 h = row * a->stride.h + kh - a->pad.h;
            if (!x || h < 0 || h >= a->in.h << a->double_size)
                memset(to, 0, bytes);
            else
                gather_line(g, x + (size_t)(t * a->in.h + (h >> a->double_size)) * line, column, to);
        }
    }
}

static void gather_piece(void *context, size_t piece)
{
    const struct gather *g = context;
    const struct conv_args *a = g->a;
    size_t row = (size_t)(a->count_t * a->kernel.h * a->kernel.w * a->channels) * g->size;
    k_i64 first = (k_i64)piece * GATHER_PIXELS, last = first + GATHER_PIXELS;
    for (k_i64 i = first; i < last && i < a->count; i++)
        gather_pixel(g, a->first + i, (char *)a->rows + (size_t)i * row);
}

static int gather(const struct conv *c, const struct conv_args *a, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct gather g = { a, number_size(c->storage) };
    if (c->g->info.api == GPU_API_HOST && !c->g->fault && !c->only) {
        gpu_host_run(c->g, div_up((size_t)a->count, GATHER_PIXELS), gather_piece, &g);
        return 0;
    }
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
    size_t size = number_size(c->storage), at = (size_t)(a->first * a->filters) * size;
    k_i64 frame = a->kernel.h * a->kernel.w * a->channels;
    struct gemm_args g = {
        .c = (char *)a->y + at,
        .a = rows,
        .b = (const char *)a->w + (size_t)(a->first_t * frame) * size,
        .residual = a->residual ? (const char *)a->residual + at : NULL,
        .bias = a->bias,
        .m = a->count,
        .n = a->filters,
        .k = a->count_t * frame,
        .a_stride = a->count_t * frame,
        .b_stride = a->kernel.t * frame,
        .c_stride = a->filters,
        .alpha = 1,
        .b_transposed = 1,
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
        set_frames(a, frame);
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
static const struct conv_way *const ways[] = { &plain, &conv_by_wgmma, &mma, &rows };

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
    bool fused =
        device->api != GPU_API_HOST && gpu_info_has_mma(device) && storage != GPU_F32 && a->channels % 8 == 0;
    return is_plain(a) || fused ? 0 : rows_bytes(device, storage, a);
}

int conv_forward(const struct conv *c, const struct conv_args *a, struct cairn_error *err)
{
    if (volume(a->out) <= 0 || a->channels <= 0 || a->filters <= 0)
        return cairn_fail(err, CAIRN_EUSAGE, "a convolution with an empty result");
    const struct conv_way *way = choose(c, a);
    if (!way)
        return cairn_fail(err, CAIRN_EUSAGE, "no convolution by %s of this shape", c->only);
    return way->run(c, a, err);
}
