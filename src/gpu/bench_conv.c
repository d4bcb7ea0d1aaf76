/* SPDX-License-Identifier: Apache-2.0
 * Convolutions as the VAEs of Wan have them. */
#include "gpu/bench_rows.h"

#include "gpu/conv.h"
#include "gpu/kernels/norm.h"

const struct bench_conv_shape bench_conv_shapes[BENCH_CONVS] = {
    [BENCH_CONV_96] = { 96, 96, 480, 832, BENCH_CONV_WHOLE },
    [BENCH_CONV_192] = { 192, 192, 240, 416, BENCH_CONV_WHOLE },
    [BENCH_CONV_384] = { 384, 384, 120, 208, BENCH_CONV_WHOLE },
    [BENCH_CONV_384_LOW] = { 384, 384, 60, 104, BENCH_CONV_WHOLE },
    [BENCH_CONV_160] = { 160, 160, 240, 416, BENCH_CONV_WHOLE },
    [BENCH_CONV_256] = { 256, 256, 240, 416, BENCH_CONV_WHOLE },
    [BENCH_CONV_640] = { 640, 640, 60, 104, BENCH_CONV_WHOLE },
    [BENCH_CONV_1024] = { 1024, 1024, 60, 104, BENCH_CONV_WHOLE },
    [BENCH_CONV_HALVE] = { 96, 96, 480, 832, BENCH_CONV_HALVES },
    [BENCH_CONV_DOUBLE] = { 192, 96, 240, 416, BENCH_CONV_DOUBLES },
    [BENCH_CONV_TIME] = { 384, 768, 60, 104, BENCH_CONV_TIMES },
    [BENCH_CONV_LAST] = { 96, 3, 480, 832, BENCH_CONV_WHOLE },
};

/* As many frames as fit, of which the first ones have a past. */
static struct conv_args args_of(const struct bench *b, const struct bench_conv_shape *s)
{
    enum { MOST = 8 };
    bool halves = s->kind == BENCH_CONV_HALVES, doubles = s->kind == BENCH_CONV_DOUBLES;
    k_i64 h = bench_is_cpu(b) ? s->height / 8 : s->height, w = bench_is_cpu(b) ? s->width / 8 : s->width;
    k_i64 out_h = halves ? h / 2 : doubles ? 2 * h : h, out_w = halves ? w / 2 : doubles ? 2 * w : w;
    k_i64 most =
        h * w * s->channels > out_h * out_w * s->filters ? h * w * s->channels : out_h * out_w * s->filters;
    k_i64 fit = (k_i64)(b->bytes / bench_number_size(b->storage)) / most, frames = fit < MOST ? fit : MOST;
    bool flat = halves || doubles, in_time = s->kind == BENCH_CONV_TIMES;
    return (struct conv_args){
        .y = b->device[2],
        .x = b->device[0],
        .past = flat ? NULL : b->device[1],
        .w = b->device[3],
        .bias = b->device[4],
        .past_frames = fit < 2 ? fit : 2,
        .channels = s->channels,
        .filters = s->filters,
        .in = { frames, h, w },
        .kernel = { flat ? 1 : 3, in_time ? 1 : 3, in_time ? 1 : 3 },
        .stride = { 1, halves ? 2 : 1, halves ? 2 : 1 },
        .pad = { flat ? 0 : 2, in_time || halves ? 0 : 1, in_time || halves ? 0 : 1 },
        .out = { frames, out_h, out_w },
        .double_size = doubles,
    };
}

int bench_conv(struct bench *b, const struct bench_row *r, struct bench_amount *a, struct cairn_error *err)
{
    struct conv_args args = args_of(b, &bench_conv_shapes[r->shape]);
    struct conv c = {
        .g = b->g, .blas = b->blas, .storage = b->storage, .work = b->device[5], .work_bytes = b->bytes
    };
    k_i64 taps = args.kernel.h * args.kernel.w, frames = 0; /* that the kernel sees */
    for (k_i64 t = 0; t < args.out.t; t++)
        for (k_i64 k = 0; k < args.kernel.t; k++)
            frames += t + k - args.pad.t >= -args.past_frames;
    if (args.in.t < 1)
        return cairn_fail(err, CAIRN_ENOMEM, "the buffers are too small for a frame");
    a->flops =
        2.0 * (double)(frames * args.out.h * args.out.w) * (double)(taps * args.channels * args.filters);
    a->sizes[0] = args.in.t, a->sizes[1] = args.in.h, a->sizes[2] = args.in.w, a->sizes[3] = args.channels;
    return blas_force(b->blas, NULL, err) || conv_forward(&c, &args, err) ? -1 : 0;
}

int bench_norm_silu(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                    struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct norm_silu_args args = {
        .y = b->device[2], .x = b->device[0], .w = b->device[4], .columns = r->keys
    };
    args.rows = (k_i64)(b->bytes / 4) / args.columns;
    a->sizes[0] = args.rows, a->sizes[1] = args.columns;
    a->bytes = 2.0 * (double)(args.rows * args.columns) * (double)bench_number_size(b->storage);
    struct gpu_grid grid = { .x = (unsigned)NORM_SILU_GROUPS(args.rows, args.columns) };
    return gpu_kernel(b->g, "norm_silu", b->storage, &k, err) ||
                   gpu_launch(b->g, NULL, k, grid, &args, sizeof(args), err)
               ? -1
               : 0;
}
