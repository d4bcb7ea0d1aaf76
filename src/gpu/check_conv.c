/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"

#include "gpu/conv.h"
#include "gpu/kernels/norm.h"
#include <math.h>

enum { PAST = 1, RESIDUAL = 2, DOUBLE = 4, NO_BIAS = 8, WIDE = 16 /* the result is f32 */ };

struct conv_case {
    k_i64 channels, filters;
    struct conv_size in, out, kernel, stride, pad;
    unsigned with;
    k_i64 past_frames;
    size_t piece; /* pixels that the workspace has room for; 0: enough */
};

#define KERNEL_333            \
    { 3, 3, 3 }, { 1, 1, 1 }, \
    {                         \
        2, 1, 1               \
    }
#define KERNEL_133            \
    { 1, 3, 3 }, { 1, 1, 1 }, \
    {                         \
        0, 1, 1               \
    }
#define KERNEL_HALF           \
    { 1, 3, 3 }, { 1, 2, 2 }, \
    {                         \
        0, 0, 0               \
    }
#define KERNEL_TIME           \
    { 3, 1, 1 }, { 1, 1, 1 }, \
    {                         \
        2, 0, 0               \
    }
#define KERNEL_HALF_TIME      \
    { 3, 1, 1 }, { 2, 1, 1 }, \
    {                         \
        0, 0, 0               \
    }
#define KERNEL_111            \
    { 1, 1, 1 }, { 1, 1, 1 }, \
    {                         \
        0, 0, 0               \
    }
static const struct conv_case cases[] = {
    { 1, 1, { 1, 1, 1 }, { 1, 1, 1 }, KERNEL_333, 0, 0, 0 },
    { 3, 5, { 4, 5, 7 }, { 4, 5, 7 }, KERNEL_333, 0, 0, 0 },
    { 4, 6, { 3, 6, 5 }, { 3, 6, 5 }, KERNEL_333, PAST | RESIDUAL, 2, 7 },
    { 2, 3, { 2, 4, 4 }, { 2, 4, 4 }, KERNEL_333, PAST | NO_BIAS, 1, 3 },
    /* more frames of the past than the kernel sees */
    { 8, 8, { 1, 3, 5 }, { 1, 3, 5 }, KERNEL_333, PAST, 4, 0 },
    /* a pixel is its own row */
    { 6, 4, { 2, 5, 3 }, { 2, 5, 3 }, KERNEL_111, RESIDUAL, 0, 0 },
    /* halved, padded behind; odd sizes */
    { 3, 3, { 2, 6, 8 }, { 2, 3, 4 }, KERNEL_HALF, 0, 0, 5 },
    { 16, 24, { 2, 7, 9 }, { 2, 4, 5 }, KERNEL_HALF, RESIDUAL, 0, 0 },
    { 3, 3, { 5, 3, 2 }, { 2, 3, 2 }, KERNEL_HALF_TIME, 0, 0, 0 },
    { 8, 16, { 4, 3, 2 }, { 4, 3, 2 }, KERNEL_TIME, PAST, 2, 0 },
    /* doubled while it is read */
    { 5, 4, { 2, 3, 4 }, { 2, 6, 8 }, KERNEL_133, DOUBLE, 0, 11 },
    { 16, 8, { 1, 5, 3 }, { 1, 10, 6 }, KERNEL_333, DOUBLE | RESIDUAL, 0, 0 },
    /* what the ends of the VAEs have */
    { 12, 32, { 2, 9, 6 }, { 2, 9, 6 }, KERNEL_333, PAST, 2, 0 },
    { 48, 16, { 1, 6, 10 }, { 1, 6, 10 }, KERNEL_333, 0, 0, 0 },
    { 32, 12, { 1, 8, 9 }, { 1, 8, 9 }, KERNEL_333, 0, 0, 0 },
    /* and what is between them */
    { 96, 96, { 2, 12, 13 }, { 2, 12, 13 }, KERNEL_333, PAST | RESIDUAL, 2, 0 },
    { 96, 192, { 1, 9, 17 }, { 1, 9, 17 }, KERNEL_333, PAST, 1, 0 },
    { 160, 160, { 1, 11, 12 }, { 1, 11, 12 }, KERNEL_333, 0, 0, 0 },
    { 64, 64, { 1, 17, 19 }, { 1, 8, 9 }, KERNEL_HALF, RESIDUAL, 0, 0 },
    { 64, 128, { 5, 6, 5 }, { 2, 6, 5 }, KERNEL_HALF_TIME, RESIDUAL, 0, 0 },
    { 96, 48, { 1, 7, 6 }, { 1, 14, 12 }, KERNEL_133, DOUBLE, 0, 0 },
    /* f32 results, new or added to */
    { 3, 5, { 2, 5, 7 }, { 2, 5, 7 }, KERNEL_333, WIDE, 0, 4 },
    { 6, 4, { 2, 5, 3 }, { 2, 5, 3 }, KERNEL_111, WIDE | RESIDUAL, 0, 0 },
    { 8, 3, { 2, 9, 6 }, { 2, 9, 6 }, KERNEL_333, WIDE | RESIDUAL, 0, 0 },
    { 96, 96, { 2, 12, 13 }, { 2, 12, 13 }, KERNEL_333, WIDE | PAST | RESIDUAL, 2, 7 },
    { 96, 48, { 1, 7, 6 }, { 1, 14, 12 }, KERNEL_133, WIDE | DOUBLE | NO_BIAS, 0, 0 },
    { 64, 200, { 1, 17, 19 }, { 1, 8, 9 }, KERNEL_HALF, WIDE, 0, 0 },
};

static size_t volume(struct conv_size s)
{
    return (size_t)(s.t * s.h * s.w);
}

struct tensors {
    struct check_tensor x, past, w, bias, residual, y;
    double *want;
};

/* The pixel of x or past that a pixel of the result sees through one of the kernel's; NULL: zeros. */
static const float *seen(const struct conv_case *k, const struct tensors *t, struct conv_size at,
                         struct conv_size tap)
{
    k_i64 f = at.t * k->stride.t + tap.t - k->pad.t, h = at.h * k->stride.h + tap.h - k->pad.h;
    k_i64 w = at.w * k->stride.w + tap.w - k->pad.w, times = k->with & DOUBLE ? 2 : 1;
    if (h < 0 || h >= k->in.h * times || w < 0 || w >= k->in.w * times || f >= k->in.t)
        return NULL;
    k_i64 pixel = h / times * k->in.w + w / times, frame = k->in.h * k->in.w;
    if (f >= 0)
        return &t->x.host[(f * frame + pixel) * k->channels];
    if (!(k->with & PAST) || f + k->past_frames < 0)
        return NULL;
    return &t->past.host[((f + k->past_frames) * frame + pixel) * k->channels];
}

static void add_pixel(const struct conv_case *k, struct tensors *t, struct conv_size at, struct conv_size tap,
                      double *want)
{
    size_t area = (size_t)(k->kernel.h * k->kernel.w), channels = (size_t)k->channels;
    size_t number = (size_t)tap.t * area + (size_t)(tap.h * k->kernel.w + tap.w);
    const float *x = seen(k, t, at, tap);
    for (size_t f = 0; x && f < (size_t)k->filters; f++) {
        const float *w = t->w.host + (f * volume(k->kernel) + number) * channels;
        for (size_t c = 0; c < channels; c++)
            want[f] += (double)x[c] * (double)w[c];
    }
}

static void make_reference(const struct conv_case *k, struct tensors *t)
{
    size_t filters = (size_t)k->filters, across = (size_t)k->out.w, down = (size_t)k->out.h;
    for (size_t p = 0; p < volume(k->out); p++) {
        struct conv_size at = { (k_i64)(p / across / down), (k_i64)(p / across % down), (k_i64)(p % across) };
        double *want = t->want + p * filters;
        for (size_t f = 0; f < filters; f++)
            want[f] = (k->with & NO_BIAS ? 0 : (double)t->bias.host[f]) +
                      (k->with & RESIDUAL ? (double)t->residual.host[p * filters + f] : 0);
        for (size_t i = 0; i < volume(k->kernel); i++) {
            k_i64 tap = (k_i64)i, wide = k->kernel.w;
            add_pixel(k, t, at,
                      (struct conv_size){ tap / wide / k->kernel.h, tap / wide % k->kernel.h, tap % wide },
                      want);
        }
    }
}

static struct tensors make_tensors(struct check *c, const struct conv_case *k)
{
    size_t channels = (size_t)k->channels, out = (size_t)k->filters * volume(k->out);
    size_t frame = (size_t)(k->in.h * k->in.w) * channels, seen_by = volume(k->kernel) * channels;
    struct tensors t = {
        .x = check_input(c, (size_t)k->in.t * frame, 1),
        .past = check_input(c, (size_t)k->past_frames * frame + 1, 1),
        .w = check_input(c, (size_t)k->filters * seen_by, 1 / sqrtf((float)seen_by)),
        .bias = check_input_f32(c, (size_t)k->filters, 1),
        .residual = k->with & WIDE ? check_input_f32(c, out, 1) : check_input(c, out, 1),
        .y = k->with & WIDE ? check_output_f32(c, out) : check_output(c, out),
        .want = check_doubles(c, out),
    };
    make_reference(k, &t);
    if (k->with & WIDE && k->with & RESIDUAL)
        t.y = t.residual;
    return t;
}

static void convolve(struct check *c, const struct conv_case *k, struct blas *blas, const char *only)
{
    struct tensors t = make_tensors(c, k);
    struct cairn_error err = { 0 };
    struct conv conv = { .g = check_gpu(c), .blas = blas, .storage = check_storage(c), .only = only };
    struct conv_args args = {
        .y = t.y.device,
        .x = t.x.device,
        .past = k->with & PAST ? t.past.device : NULL,
        .w = t.w.device,
        .residual = k->with & RESIDUAL ? t.residual.device : NULL,
        .bias = k->with & NO_BIAS ? NULL : t.bias.device,
        .past_frames = k->past_frames,
        .channels = k->channels,
        .filters = k->filters,
        .in = k->in,
        .kernel = k->kernel,
        .stride = k->stride,
        .pad = k->pad,
        .out = k->out,
        .double_size = (k->with & DOUBLE) != 0,
        .y_f32 = (k->with & WIDE) != 0,
    };
    size_t row = volume(k->kernel) * (size_t)k->channels * (check_storage(c) == GPU_F32 ? 4 : 2);
    conv.work_bytes = (k->piece ? k->piece : 1000) * row;
    struct check_tensor work = check_output_f32(c, conv.work_bytes / 4 + 1);
    conv.work = work.device;
    if (check_ok(c) && (conv_forward(&conv, &args, &err) || gpu_wait(conv.g, NULL, &err)))
        check_complain(c, "%s", err.msg);
    /* Matrix units of GPUs cut off what sums have below their last bit. */
    check_compare(c, &t.y, t.want, check_storage(c) == GPU_F32 ? 32 : k->with & WIDE ? 128 : 2);
}

static void every_case(struct check *c, const char *only, k_i64 channels)
{
    struct blas *blas;
    struct cairn_error err = { 0 };
    if (blas_open(check_gpu(c), &blas, &err)) {
        check_complain(c, "%s", err.msg);
        return;
    }
    blas_force(blas, "gemm", &err);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (cases[i].channels % channels == 0)
            convolve(c, &cases[i], blas, only);
    blas_close(blas);
}

static void conv_rows(struct check *c)
{
    every_case(c, "conv_rows", 1);
}

/* As others call it. */
static void conv_whole(struct check *c)
{
    every_case(c, NULL, 1);
}

static void conv_mma_96(struct check *c)
{
    every_case(c, "conv_mma_96", 8);
}

static void conv_mma_128(struct check *c)
{
    every_case(c, "conv_mma_128", 8);
}

#define BY_WGMMA(n)                             \
    static void conv_wgmma_##n(struct check *c) \
    {                                           \
        every_case(c, "conv_wgmma_" #n, 8);     \
    }
BY_WGMMA(32)
BY_WGMMA(96)
BY_WGMMA(128)
BY_WGMMA(160)
BY_WGMMA(192)

/* ---- patches ---- */

static void patch_shape(struct check *c, size_t channels, struct conv_size in, struct conv_size patch)
{
    size_t n = channels * volume(in), rows = channels * volume(patch), count = volume(in) / volume(patch);
    size_t across = (size_t)(in.w / patch.w), down = (size_t)(in.h / patch.h);
    struct check_tensor x = check_input(c, n, 1), columns = check_output(c, n);
    double *want = check_doubles(c, n);
    for (size_t i = 0; i < n; i++) {
        size_t w = i % (size_t)in.w, h = i / (size_t)in.w % (size_t)in.h,
               t = i / (size_t)(in.w * in.h) % (size_t)in.t, channel = i / volume(in);
        size_t pt = (size_t)patch.t, ph = (size_t)patch.h, pw = (size_t)patch.w;
        size_t column = (t / pt * down + h / ph) * across + w / pw;
        size_t row = ((channel * pt + t % pt) * ph + h % ph) * pw + w % pw;
        want[row * count + column] = (double)x.host[i];
    }
    struct patch_columns_args args = { .columns = columns.device,
                                       .x = x.device,
                                       .channels = (k_i64)channels,
                                       .count = (k_i64)count,
                                       .in = in,
                                       .patch = patch };
    CHECK_LAUNCH(
        c, "patch_columns",
        ((struct gpu_grid){ .x = (unsigned)((count + PATCH_STEP - 1) / PATCH_STEP), .y = (unsigned)rows }),
        args);
    check_compare(c, &columns, want, 0);
}

static void patch_columns(struct check *c)
{
    patch_shape(c, 1, (struct conv_size){ 1, 2, 2 }, (struct conv_size){ 1, 2, 2 });
    patch_shape(c, 3, (struct conv_size){ 4, 6, 9 }, (struct conv_size){ 2, 2, 3 });
    patch_shape(c, 2, (struct conv_size){ 2, 64, 40 }, (struct conv_size){ 1, 1, 1 });
}

/* ---- norm ---- */

static void norm_silu_shape(struct check *c, size_t rows, size_t columns, bool wide)
{
    size_t n = rows * columns;
    struct check_tensor x = wide ? check_input_f32(c, n, 3) : check_input(c, n, 3),
                        w = check_input_f32(c, columns, 1), y = check_output(c, n);
    double *want = check_doubles(c, n);
    for (size_t r = 0; r < rows; r++) {
        double square = 0;
        for (size_t i = 0; i < columns; i++)
            square += (double)x.host[r * columns + i] * (double)x.host[r * columns + i];
        for (size_t i = 0; i < columns; i++) {
            double z = (double)x.host[r * columns + i] / fmax(sqrt(square), 1e-12) * sqrt((double)columns) *
                       (double)w.host[i];
            want[r * columns + i] = z / (1 + exp(-z));
        }
    }
    struct norm_silu_args args = {
        .y = y.device, .x = x.device, .w = w.device, .rows = (k_i64)rows, .columns = (k_i64)columns
    };
    struct gpu_grid grid = { .x = (unsigned)NORM_SILU_GROUPS(rows, columns) };
    CHECK_LAUNCH(c, wide ? "norm_silu_wide" : "norm_silu", grid, args);
    check_compare(c, &y, want, 8);
    if (wide)
        return;
    args.y = x.device; /* in place */
    CHECK_LAUNCH(c, "norm_silu", grid, args);
    check_compare(c, &x, want, 8);
}

static void norm_silu_shapes(struct check *c, bool wide)
{
    static const size_t columns[] = { 1, 3, 96, 100, 160, 192, 384, 640, 1024, 1033, 5000 };
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        norm_silu_shape(c, i == 2 ? 4099 : 67, columns[i], wide);
    norm_silu_shape(c, 1, 512, wide);
}

static void norm_silu(struct check *c)
{
    norm_silu_shapes(c, false);
}

static void norm_silu_wide(struct check *c)
{
    norm_silu_shapes(c, true);
}

const struct check_case checks_conv[] = {
    { "conv_rows", conv_rows, false },           { "conv_mma_96", conv_mma_96, false },
    { "conv_mma_128", conv_mma_128, false },     { "conv_wgmma_32", conv_wgmma_32, false },
    { "conv_wgmma_96", conv_wgmma_96, false },   { "conv_wgmma_128", conv_wgmma_128, false },
    { "conv_wgmma_160", conv_wgmma_160, false }, { "conv_wgmma_192", conv_wgmma_192, false },
    { "conv_whole", conv_whole, false },         { "patch_columns", patch_columns, false },
    { "norm_silu", norm_silu, false },           { "norm_silu_wide", norm_silu_wide, false },
};
const size_t n_checks_conv = ARRAY_LEN(checks_conv);
