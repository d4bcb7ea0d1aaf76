/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"

#include "gpu/conv.h"

struct conv_case {
    struct conv_shape s;
    k_i64 filters;
    size_t work_frames; /* of columns: fewer than the result's makes pieces */
    bool past;
};

#define CAUSAL(c, t_, h_, w_, before)                                         \
    {                                                                         \
        (c), (before), { t_, h_, w_ }, { 3, 3, 3 }, { 1, 1, 1 }, { 2, 1, 1 }, \
        {                                                                     \
            t_, h_, w_                                                        \
        }                                                                     \
    }
static const struct conv_case cases[] = {
    { CAUSAL(1, 1, 1, 1, 0), 1, 1, false },
    { CAUSAL(3, 4, 5, 7, 0), 5, 4, false },
    { CAUSAL(4, 3, 6, 5, 2), 6, 2, true },
    { CAUSAL(2, 2, 4, 4, 1), 3, 1, true },
    /* 1 × 1 × 1, as it is in memory */
    { { 6, 0, { 2, 5, 3 }, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, { 2, 5, 3 } }, 4, 0, false },
    /* rows and columns halved, padded at the end; then time halved */
    { { 3, 0, { 2, 6, 8 }, { 1, 3, 3 }, { 1, 2, 2 }, { 0, 0, 0 }, { 2, 3, 4 } }, 3, 1, false },
    { { 3, 0, { 5, 3, 2 }, { 3, 1, 1 }, { 2, 1, 1 }, { 0, 0, 0 }, { 2, 3, 2 } }, 3, 1, false },
    { CAUSAL(16, 3, 20, 20, 0), 24, 2, false },
};

struct tensors {
    struct check_tensor x, past, w, bias, y, dy, dx, dw;
    double *want_y, *want_dx, *want_dw;
};

static size_t volume(struct conv_place p)
{
    return (size_t)(p.t * p.h * p.w);
}

/* What a place of the result sees of x or past through a number of the kernel; NULL: zero. */
static const float *seen(const struct conv_case *k, const struct tensors *t, struct conv_place at,
                         struct conv_place tap, k_i64 channel, size_t *x_at)
{
    const struct conv_shape *s = &k->s;
    k_i64 f = at.t * s->stride.t + tap.t - s->pad.t, h = at.h * s->stride.h + tap.h - s->pad.h;
    k_i64 w = at.w * s->stride.w + tap.w - s->pad.w;
    *x_at = (size_t)-1;
    if (h < 0 || h >= s->in.h || w < 0 || w >= s->in.w || f >= s->in.t)
        return NULL;
    if (f >= 0) {
        *x_at = (size_t)(((channel * s->in.t + f) * s->in.h + h) * s->in.w + w);
        return &t->x.host[*x_at];
    }
    if (!k->past || f + s->past_frames < 0)
        return NULL;
    return &t->past.host[((channel * s->past_frames + f + s->past_frames) * s->in.h + h) * s->in.w + w];
}

static void reference_place(const struct conv_case *k, struct tensors *t, size_t filter, size_t place)
{
    const struct conv_shape *s = &k->s;
    struct conv_place at = { (k_i64)place / (s->out.h * s->out.w), (k_i64)place / s->out.w % s->out.h,
                             (k_i64)place % s->out.w };
    size_t taps = volume(s->kernel), rows = taps * (size_t)s->channels,
           y_at = filter * volume(s->out) + place;
    t->want_y[y_at] = t->bias.host[filter];
    for (size_t row = 0; row < rows; row++) {
        k_i64 tap = (k_i64)(row % taps);
        struct conv_place kt = { tap / (s->kernel.h * s->kernel.w), tap / s->kernel.w % s->kernel.h,
                                 tap % s->kernel.w };
        size_t x_at;
        const float *x = seen(k, t, at, kt, (k_i64)(row / taps), &x_at);
        if (!x)
            continue;
        t->want_y[y_at] += (double)*x * t->w.host[filter * rows + row];
        t->want_dw[filter * rows + row] += (double)*x * t->dy.host[y_at];
        if (x_at != (size_t)-1)
            t->want_dx[x_at] += (double)t->w.host[filter * rows + row] * t->dy.host[y_at];
    }
}

static struct tensors make_tensors(struct check *c, const struct conv_case *k)
{
    const struct conv_shape *s = &k->s;
    size_t in = (size_t)s->channels * volume(s->in), out = (size_t)k->filters * volume(s->out);
    size_t weights = (size_t)(k->filters * s->channels) * volume(s->kernel);
    struct tensors t = {
        .x = check_input(c, in, 1),
        .past = check_input(c, (size_t)(s->channels * s->past_frames * s->in.h * s->in.w) + 1, 1),
        .w = check_input(c, weights, 0.2f),
        .bias = check_input_f32(c, (size_t)k->filters, 1),
        .dy = check_input(c, out, 1),
        .y = check_output(c, out),
        .dx = check_output(c, in),
        .dw = check_input_f32(c, weights, 1),
        .want_y = check_doubles(c, out),
        .want_dx = check_doubles(c, in),
        .want_dw = check_doubles(c, weights),
    };
    for (size_t i = 0; i < in; i++)
        t.want_dx[i] = 0;
    for (size_t i = 0; i < weights; i++)
        t.want_dw[i] = t.dw.host[i];
    for (size_t f = 0; f < (size_t)k->filters; f++)
        for (size_t p = 0; p < volume(s->out); p++)
            reference_place(k, &t, f, p);
    return t;
}

static void convolve(struct check *c, const struct conv_case *k, struct blas *blas)
{
    struct tensors t = make_tensors(c, k);
    struct cairn_error err = { 0 };
    struct conv conv = {
        .blas = blas, .g = check_gpu(c), .storage = check_storage(c), .shape = k->s, .filters = k->filters
    };
    struct check_tensor work = check_output_f32(c, conv_workspace_min(&conv) * k->work_frames / 4 + 1);
    conv.work = work.device;
    conv.work_bytes = conv_workspace_min(&conv) * k->work_frames;
    const void *past = k->past ? t.past.device : NULL;
    if (check_ok(c) && (conv_forward(&conv, t.y.device, t.x.device, past, t.w.device, t.bias.device, &err) ||
                        conv_backward_data(&conv, t.dx.device, t.dy.device, t.w.device, &err) ||
                        conv_backward_weights(&conv, t.dw.device, t.dy.device, t.x.device, past, &err) ||
                        gpu_wait(check_gpu(c), NULL, &err)))
        check_complain(c, "%s", err.msg);
    /* In 16 bits columns of gradients are rounded before they are added up, and dx once more for each
     * piece. */
    double narrow = check_storage(c) != GPU_F32;
    check_compare(c, &t.y, t.want_y, narrow ? 2 : 32);
    check_compare(c, &t.dx, t.want_dx, narrow ? 8 : 32);
    check_compare(c, &t.dw, t.want_dw, 64);
}

static void all_shapes(struct check *c)
{
    struct blas *blas;
    struct cairn_error err = { 0 };
    if (blas_open(check_gpu(c), &blas, &err)) {
        check_complain(c, "%s", err.msg);
        return;
    }
    blas_force(blas, "gemm", &err);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        convolve(c, &cases[i], blas);
    blas_close(blas);
}

const struct check_case checks_conv[] = {
    { "conv", all_shapes, false },
};
const size_t n_checks_conv = ARRAY_LEN(checks_conv);
