/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/conv.h"

#include "base/int.h"

static k_i64 rows_of(const struct conv_shape *s)
{
    return s->channels * s->kernel.t * s->kernel.h * s->kernel.w;
}

static k_i64 volume(struct conv_place p)
{
    return p.t * p.h * p.w;
}

static size_t width_of(const struct conv *c)
{
    return c->storage == GPU_F32 ? 4 : 2;
}

/* x is its own columns. */
static bool is_plain(const struct conv_shape *s)
{
    return volume(s->kernel) == 1 && volume(s->stride) == 1 && !s->pad.t && !s->pad.h && !s->pad.w &&
           volume(s->in) == volume(s->out);
}

size_t conv_workspace_min(const struct conv *c)
{
    const struct conv_shape *s = &c->shape;
    return is_plain(s) ? 0 : (size_t)(rows_of(s) * s->out.h * s->out.w) * width_of(c);
}

/* Positions per piece: whole frames. */
static int piece_of(const struct conv *c, k_i64 *count, struct cairn_error *err)
{
    const struct conv_shape *s = &c->shape;
    size_t frame = conv_workspace_min(c);
    if (s->out.t <= 0 || s->out.h <= 0 || s->out.w <= 0 || s->channels <= 0 || c->filters <= 0)
        return cairn_fail(err, CAIRN_EUSAGE, "a convolution with an empty result");
    if (frame > c->work_bytes)
        return cairn_fail(err, CAIRN_EUSAGE, "a convolution needs a workspace of %zu bytes, but has %zu",
                          frame, c->work_bytes);
    k_i64 frames = frame ? (k_i64)(c->work_bytes / frame) : s->out.t;
    *count = (frames < s->out.t ? frames : s->out.t) * s->out.h * s->out.w;
    return 0;
}

static int launch(const struct conv *c, const char *name, k_i64 n, k_i64 rows, const void *args, size_t size,
                  struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct gpu_grid grid = { (unsigned)(div_up(n, CONV_STEP)), (unsigned)rows, 1 };
    if (gpu_kernel(c->g, name, c->storage, &k, err))
        return -1;
    return gpu_launch(c->g, c->stream, k, grid, args, size, err);
}

/* Positions first … first + count as columns; x itself if possible. */
static int columns_of(const struct conv *c, const void *x, const void *past, k_i64 first, k_i64 count,
                      const void **columns, k_i64 *stride, struct cairn_error *err)
{
    struct conv_columns_args args = { .columns = c->work, .x = x, .past = past, .s = c->shape };
    if (is_plain(&c->shape)) {
        *columns = (const char *)x + (size_t)first * width_of(c);
        *stride = volume(c->shape.in);
        return 0;
    }
    args.first = first, args.count = count;
    *columns = c->work;
    *stride = count;
    return launch(c, "conv_columns", count, rows_of(&c->shape), &args, sizeof(args), err);
}

static k_i64 next_piece(k_i64 left, k_i64 piece)
{
    return left < piece ? left : piece;
}

int conv_forward(const struct conv *c, void *y, const void *x, const void *past, const void *weights,
                 const float *bias, struct cairn_error *err)
{
    k_i64 all = volume(c->shape.out), rows = rows_of(&c->shape), piece;
    if (piece_of(c, &piece, err))
        return -1;
    for (k_i64 first = 0; first < all; first += piece) {
        k_i64 count = next_piece(all - first, piece);
        struct gemm_args g = { .c = (char *)y + (size_t)first * width_of(c),
                               .a = weights,
                               .bias = bias,
                               .m = c->filters,
                               .n = count,
                               .k = rows,
                               .a_stride = rows,
                               .c_stride = all,
                               .alpha = 1,
                               .bias_rows = 1 };
        if (columns_of(c, x, past, first, count, &g.b, &g.b_stride, err) ||
            blas_gemm(c->blas, c->stream, c->storage, &g, 1, err))
            return -1;
    }
    return 0;
}

int conv_backward_data(const struct conv *c, void *dx, const void *dy, const void *weights,
                       struct cairn_error *err)
{
    k_i64 all = volume(c->shape.out), rows = rows_of(&c->shape), inside = volume(c->shape.in), piece;
    if (piece_of(c, &piece, err))
        return -1;
    for (k_i64 first = 0; first < all; first += piece) {
        k_i64 count = next_piece(all - first, piece);
        bool plain = is_plain(&c->shape);
        struct gemm_args g = { .c = plain ? (char *)dx + (size_t)first * width_of(c) : c->work,
                               .a = weights,
                               .b = (const char *)dy + (size_t)first * width_of(c),
                               .m = rows,
                               .n = count,
                               .k = c->filters,
                               .a_stride = rows,
                               .b_stride = all,
                               .c_stride = plain ? inside : count,
                               .alpha = 1,
                               .a_transposed = 1 };
        struct conv_fold_args fold = {
            .dx = dx, .columns = c->work, .s = c->shape, .first = first, .count = count, .add = first > 0
        };
        if (blas_gemm(c->blas, c->stream, c->storage, &g, 1, err) ||
            (!plain && launch(c, "conv_fold", inside, c->shape.channels, &fold, sizeof(fold), err)))
            return -1;
    }
    return 0;
}

int conv_backward_weights(const struct conv *c, float *dw, const void *dy, const void *x, const void *past,
                          struct cairn_error *err)
{
    k_i64 all = volume(c->shape.out), rows = rows_of(&c->shape), piece;
    if (piece_of(c, &piece, err))
        return -1;
    for (k_i64 first = 0; first < all; first += piece) {
        k_i64 count = next_piece(all - first, piece);
        struct gemm_args g = { .c = dw,
                               .a = (const char *)dy + (size_t)first * width_of(c),
                               .m = c->filters,
                               .n = rows,
                               .k = count,
                               .a_stride = all,
                               .c_stride = rows,
                               .alpha = 1,
                               .beta = 1,
                               .b_transposed = 1,
                               .c_f32 = 1 };
        if (columns_of(c, x, past, first, count, &g.b, &g.b_stride, err) ||
            blas_gemm(c->blas, c->stream, c->storage, &g, 1, err))
            return -1;
    }
    return 0;
}
