/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"

#include "gpu/attention.h"
#include <math.h>

static const struct attention_case {
    size_t samples, heads, kv_heads, queries, keys, size;
    bool causal;
    int shift;
    size_t span; /* of the bias; 0: there is none */
} shapes[] = {
    { 1, 1, 1, 1, 1, 4, false, 0, 0 },
    { 2, 3, 3, 5, 5, 7, true, 0, 0 },
    { 1, 4, 2, 33, 47, 20, false, 0, 0 },
    { 1, 2, 1, 40, 40, 64, true, 0, 0 },
    { 1, 2, 2, 19, 70, 33, true, 51, 0 },
    { 1, 1, 1, 40, 20, 96, true, -3, 0 },
    { 1, 2, 1, 65, 33, 128, false, 0, 0 },
    { 2, 4, 2, 130, 130, 80, true, 0, 0 },
    /* cross attention to text and to images */
    { 1, 1, 1, 50, 512, 128, false, 0, 0 },
    { 1, 2, 2, 70, 257, 24, false, 0, 0 },
    { 1, 1, 1, 9, 257, 4, false, 0, 0 },
};
/* For kernels with large tiles, which take heads of 64 or 128 numbers only; in the third many queries see no key. */
static const struct attention_case whole_heads[] = {
    { 2, 4, 2, 300, 257, 64, false, 0, 0 },   { 1, 2, 2, 290, 290, 64, true, 0, 0 },
    { 1, 4, 2, 290, 150, 64, true, -140, 0 }, { 2, 4, 2, 300, 257, 128, false, 0, 0 },
    { 1, 2, 1, 290, 400, 128, true, 110, 0 }, { 1, 2, 2, 290, 150, 128, true, -140, 0 },
    { 1, 2, 1, 1, 600, 128, false, 0, 0 },    { 1, 2, 1, 600, 1, 64, false, 0, 0 },
};

/* With a bias: a text encoder's self attention. */
static const struct attention_case biased[] = {
    { 1, 2, 2, 1, 1, 4, false, 0, 1 },       { 2, 3, 3, 33, 33, 24, false, 0, 5 },
    { 1, 2, 2, 200, 200, 64, false, 0, 91 }, { 1, 2, 1, 70, 300, 64, true, 10, 128 },
    { 1, 1, 1, 65, 66, 128, false, 0, 400 },
};

struct operands {
    const struct attention_case *s;
    struct check_tensor q, k, v, o, lse, d_o, delta, dq, dk, dv, bias;
    double *want_o, *want_lse, *want_delta, *want_dq, *want_dk, *want_dv;
    double scale;
};

/* [sample][token][head][size], as a projection leaves it. */
static struct attention_stride strides(size_t tokens, size_t heads, size_t size)
{
    return (struct attention_stride){ (k_i64)(tokens * heads * size), (k_i64)(heads * size), (k_i64)size };
}

static size_t place(size_t tokens, size_t heads, size_t size, size_t sample, size_t token, size_t head)
{
    return ((sample * tokens + token) * heads + head) * size;
}

static struct operands make_operands(struct check *c, const struct attention_case *s)
{
    size_t nq = s->samples * s->queries * s->heads * s->size,
           nk = s->samples * s->keys * s->kv_heads * s->size;
    size_t rows = s->samples * s->heads * s->queries;
    struct operands o = { .s = s, .scale = (float)(1 / sqrt((double)s->size)) };
    if (s->span)
        o.bias = check_input_f32(c, s->heads * (2 * s->span + 1), 2);
    o.q = check_input(c, nq, 1);
    o.k = check_input(c, nk, 1);
    o.v = check_input(c, nk, 1);
    o.d_o = check_input(c, nq, 1);
    o.o = check_output(c, nq);
    o.dq = check_output(c, nq);
    o.dk = check_output(c, nk);
    o.dv = check_output(c, nk);
    o.lse = check_output_f32(c, rows);
    o.delta = check_output_f32(c, rows);
    double **results[] = { &o.want_o, &o.want_dq, &o.want_dk, &o.want_dv, &o.want_lse, &o.want_delta };
    const size_t sizes[] = { nq, nq, nk, nk, rows, rows };
    for (size_t i = 0; i < ARRAY_LEN(results); i++)
        *results[i] = check_zeros(c, sizes[i]);
    return o;
}

static double bias_of(const struct operands *o, size_t head, size_t query, size_t key)
{
    long span = (long)o->s->span, d = (long)key - (long)query;
    d = d < -span ? -span : d > span ? span : d;
    return span ? (double)o->bias.host[(long)head * (2 * span + 1) + span + d] : 0;
}

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * y[i];
    return sum;
}

/* One query: its weights over the keys into p; false when it sees none. */
static bool weigh(const struct operands *o, size_t head, size_t query, const float *q, size_t kv, double *p,
                  double *lse)
{
    const struct attention_case *s = o->s;
    double most = -INFINITY, sum = 0;
    size_t step = s->kv_heads * s->size;
    for (size_t j = 0; j < s->keys; j++) {
        bool seen = !s->causal || (long)j <= (long)query + s->shift;
        p[j] = seen ? dot(q, o->k.host + kv + j * step, s->size) * o->scale + bias_of(o, head, query, j)
                    : -INFINITY;
        most = fmax(most, p[j]);
    }
    for (size_t j = 0; j < s->keys; j++) {
        p[j] = isinf(most) ? 0 : exp(p[j] - most);
        sum += p[j];
    }
    for (size_t j = 0; j < s->keys && sum > 0; j++)
        p[j] /= sum;
    *lse = most + log(sum);
    return sum > 0;
}

/* Forward, and with `gradients` backward. */
static void reference_row(struct operands *o, size_t sample, size_t head, size_t query, bool gradients,
                          double *p)
{
    const struct attention_case *s = o->s;
    size_t kv_head = head / (s->heads / s->kv_heads), row = (sample * s->heads + head) * s->queries + query;
    size_t at = place(s->queries, s->heads, s->size, sample, query, head);
    size_t kv = place(s->keys, s->kv_heads, s->size, sample, 0, kv_head), step = s->kv_heads * s->size;
    const float *d_o = o->d_o.host + at;
    double delta = 0;
    if (!weigh(o, head, query, o->q.host + at, kv, p, &o->want_lse[row]))
        return;
    for (size_t j = 0; j < s->keys; j++)
        for (size_t d = 0; d < s->size; d++)
            o->want_o[at + d] += p[j] * o->v.host[kv + j * step + d];
    if (!gradients)
        return;
    for (size_t d = 0; d < s->size; d++)
        delta += o->want_o[at + d] * d_o[d];
    o->want_delta[row] = delta;
    for (size_t j = 0; j < s->keys; j++) {
        double ds = p[j] * (dot(d_o, o->v.host + kv + j * step, s->size) - delta) * o->scale;
        for (size_t d = 0; d < s->size; d++) {
            o->want_dq[at + d] += ds * o->k.host[kv + j * step + d];
            o->want_dk[kv + j * step + d] += ds * o->q.host[at + d];
            o->want_dv[kv + j * step + d] += p[j] * d_o[d];
        }
    }
}

static void reference(struct check *c, struct operands *o, bool gradients)
{
    double *p = check_doubles(c, o->s->keys);
    for (size_t sample = 0; sample < o->s->samples; sample++)
        for (size_t head = 0; head < o->s->heads; head++)
            for (size_t query = 0; query < o->s->queries; query++)
                reference_row(o, sample, head, query, gradients, p);
}

static struct gpu_grid grid_by(size_t tile, size_t rows, size_t heads, size_t samples)
{
    return (struct gpu_grid){ (unsigned)((rows + tile - 1) / tile), (unsigned)heads, (unsigned)samples };
}

/* Rows that see nothing have a lse of minus infinity, which no difference can be taken of. */
static void compare_lse(struct check *c, struct operands *o)
{
    check_fetch(c, &o->lse);
    double worst = 0;
    for (size_t i = 0; i < o->lse.n; i++)
        if (!isinf(o->want_lse[i]) || (double)o->lse.host[i] != o->want_lse[i])
            worst = fmax(worst, fabs(o->lse.host[i] - o->want_lse[i]));
    if (!(worst < 1e-5))
        check_complain(c, "lse is off by %.3g", worst);
}

static struct attention_args forward_args(const struct operands *o)
{
    const struct attention_case *s = o->s;
    struct attention_stride q = strides(s->queries, s->heads, s->size),
                            k = strides(s->keys, s->kv_heads, s->size);
    return (struct attention_args){
        .o = o->o.device,
        .lse = o->lse.device,
        .q = o->q.device,
        .k = o->k.device,
        .v = o->v.device,
        .o_by = q,
        .q_by = q,
        .k_by = k,
        .v_by = k,
        .heads = (k_i64)s->heads,
        .kv_heads = (k_i64)s->kv_heads,
        .queries = (k_i64)s->queries,
        .keys = (k_i64)s->keys,
        .size = (k_i64)s->size,
        .causal_shift = s->shift,
        .causal = s->causal,
        .scale = (float)o->scale,
        .bias = s->span ? o->bias.device : NULL,
        .bias_span = (k_i64)s->span,
    };
}

static struct attention_backward_args backward_args(const struct operands *o)
{
    const struct attention_case *s = o->s;
    struct attention_stride q = strides(s->queries, s->heads, s->size),
                            k = strides(s->keys, s->kv_heads, s->size);
    return (struct attention_backward_args){
        .dq = o->dq.device,
        .dk = o->dk.device,
        .dv = o->dv.device,
        .delta = o->delta.device,
        .q = o->q.device,
        .k = o->k.device,
        .v = o->v.device,
        .o = o->o.device,
        .d_o = o->d_o.device,
        .lse = o->lse.device,
        .dq_by = q,
        .dk_by = k,
        .dv_by = k,
        .q_by = q,
        .k_by = k,
        .v_by = k,
        .o_by = q,
        .d_o_by = q,
        .heads = (k_i64)s->heads,
        .kv_heads = (k_i64)s->kv_heads,
        .queries = (k_i64)s->queries,
        .keys = (k_i64)s->keys,
        .size = (k_i64)s->size,
        .causal_shift = s->shift,
        .causal = s->causal,
        .scale = (float)o->scale,
    };
}

static void run_forward(struct check *c, const char *kernel, size_t tile, struct operands *o)
{
    const struct attention_case *s = o->s;
    struct attention_args args = forward_args(o);
    CHECK_LAUNCH(c, kernel, grid_by(tile, s->queries, s->heads, s->samples), args);
}

static void run_backward(struct check *c, const char *kernel, size_t tile, struct operands *o,
                         bool rows_are_keys)
{
    const struct attention_case *s = o->s;
    struct attention_backward_args args = backward_args(o);
    CHECK_LAUNCH(c, kernel,
                 rows_are_keys ? grid_by(tile, s->keys, s->kv_heads, s->samples)
                               : grid_by(tile, s->queries, s->heads, s->samples),
                 args);
}

/* In f32 sums of a few hundred products; in 16 bits the rounding of the result, and in backward of o too. */
static double slack(struct check *c, double narrow)
{
    return check_storage(c) == GPU_F32 ? 32 : narrow;
}

/* Operands with the results they should give. */
static struct operands prepare(struct check *c, const struct attention_case *shape, bool gradients)
{
    struct operands o = make_operands(c, shape);
    reference(c, &o, gradients);
    return o;
}

static void forward_by(struct check *c, const char *kernel, size_t tile, size_t size, double narrow)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        if (shapes[i].size <= size) {
            struct operands o = prepare(c, &shapes[i], false);
            run_forward(c, kernel, tile, &o);
            check_compare(c, &o.o, o.want_o, slack(c, narrow));
            compare_lse(c, &o);
        }
    for (size_t i = 0; i < ARRAY_LEN(biased); i++)
        if (biased[i].size <= size) {
            struct operands o = prepare(c, &biased[i], false);
            run_forward(c, kernel, tile, &o);
            check_compare(c, &o.o, o.want_o, slack(c, narrow));
            compare_lse(c, &o);
        }
}

/* One query is not a number: its results are none either, and only those. */
static struct operands prepare_nan(struct check *c, const struct attention_case *shape)
{
    struct operands o = prepare(c, shape, false);
    size_t query = 5, head = 1;
    size_t at = place(o.s->queries, o.s->heads, o.s->size, 0, query, head);
    check_poison(c, &o.q, at + 3);
    for (size_t d = 0; d < o.s->size; d++)
        o.want_o[at + d] = NAN;
    return o;
}

static void forward_of_nan(struct check *c, const char *kernel, size_t tile,
                           const struct attention_case *shape)
{
    struct operands o = prepare_nan(c, shape);
    run_forward(c, kernel, tile, &o);
    check_compare(c, &o.o, o.want_o, slack(c, 4));
}

static void forward(struct check *c)
{
    forward_by(c, "attention", ATTENTION_ROWS, ATTENTION_SIZE, 2);
    forward_of_nan(c, "attention", ATTENTION_ROWS, &shapes[2]);
}

/* Weights are rounded to 16 bits before they multiply. */
static void forward_64(struct check *c)
{
    forward_by(c, "attention_mma_64", ATTENTION_MMA_ROWS, 64, 4);
    forward_of_nan(c, "attention_mma_64", ATTENTION_MMA_ROWS, &shapes[2]);
}

static void forward_128(struct check *c)
{
    forward_by(c, "attention_mma_128", ATTENTION_MMA_ROWS, 128, 4);
    forward_of_nan(c, "attention_mma_128", ATTENTION_MMA_ROWS, &shapes[2]);
}

static void forward_of_whole_heads(struct check *c, const char *kernel, size_t size)
{
    for (size_t i = 0; i < ARRAY_LEN(whole_heads); i++)
        if (whole_heads[i].size == size) {
            struct operands o = prepare(c, &whole_heads[i], false);
            run_forward(c, kernel, size, &o);
            check_compare(c, &o.o, o.want_o, slack(c, 4));
            compare_lse(c, &o);
        }
    forward_of_nan(c, kernel, size, size == 64 ? &whole_heads[0] : &whole_heads[3]);
}

static void forward_wgmma_64(struct check *c)
{
    forward_of_whole_heads(c, "attention_wgmma_64", 64);
}

static void forward_wgmma_128(struct check *c)
{
    forward_of_whole_heads(c, "attention_wgmma_128", 128);
}

/* Forward and delta, which the backward kernels begin with. */
static struct operands prepare_backward(struct check *c, const struct attention_case *shape)
{
    struct operands o = prepare(c, shape, true);
    run_forward(c, "attention", ATTENTION_ROWS, &o);
    run_backward(c, "attention_delta", ATTENTION_ROWS, &o, false);
    return o;
}

static void delta(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct operands o = prepare_backward(c, &shapes[i]);
        check_fetch(c, &o.o);
        for (size_t row = 0; row < o.delta.n; row++) {
            size_t query = row % shapes[i].queries, head = row / shapes[i].queries % shapes[i].heads;
            size_t at = place(shapes[i].queries, shapes[i].heads, shapes[i].size,
                              row / shapes[i].queries / shapes[i].heads, query, head);
            o.want_delta[row] = dot(o.o.host + at, o.d_o.host + at, shapes[i].size);
        }
        check_compare(c, &o.delta, o.want_delta, 16);
    }
}

static void backward_of(struct check *c, const char *kernel, size_t tile, const struct attention_case *shape,
                        bool by_keys)
{
    struct operands o = prepare_backward(c, shape);
    run_backward(c, kernel, tile, &o, by_keys);
    check_compare(c, by_keys ? &o.dk : &o.dq, by_keys ? o.want_dk : o.want_dq, slack(c, 8));
    if (by_keys)
        check_compare(c, &o.dv, o.want_dv, slack(c, 8));
}

static void backward_by(struct check *c, const char *kernel, size_t tile, size_t size, bool by_keys)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        if (shapes[i].size <= size)
            backward_of(c, kernel, tile, &shapes[i], by_keys);
}

static void backward_of_whole_heads(struct check *c, const char *kernel, size_t size, bool by_keys)
{
    for (size_t i = 0; i < ARRAY_LEN(whole_heads); i++)
        if (whole_heads[i].size == size)
            backward_of(c, kernel, size, &whole_heads[i], by_keys);
}

static void dq_wgmma_64(struct check *c)
{
    backward_of_whole_heads(c, "attention_dq_wgmma_64", 64, false);
}

static void dq_wgmma_128(struct check *c)
{
    backward_of_whole_heads(c, "attention_dq_wgmma_128", 128, false);
}

static void dkv_wgmma_64(struct check *c)
{
    backward_of_whole_heads(c, "attention_dkv_wgmma_64", 64, true);
}

static void dkv_wgmma_128(struct check *c)
{
    backward_of_whole_heads(c, "attention_dkv_wgmma_128", 128, true);
}

static void dq(struct check *c)
{
    backward_by(c, "attention_dq", ATTENTION_ROWS, ATTENTION_SIZE, false);
}

static void dq_64(struct check *c)
{
    backward_by(c, "attention_dq_mma_64", ATTENTION_MMA_ROWS, 64, false);
}

static void dq_128(struct check *c)
{
    backward_by(c, "attention_dq_mma_128", ATTENTION_MMA_ROWS, 128, false);
}

static void dkv(struct check *c)
{
    backward_by(c, "attention_dkv", ATTENTION_ROWS, ATTENTION_SIZE, true);
}

static void dkv_64(struct check *c)
{
    backward_by(c, "attention_dkv_mma_64", ATTENTION_MMA_ROWS, 64, true);
}

static void dkv_128(struct check *c)
{
    backward_by(c, "attention_dkv_mma_128", ATTENTION_MMA_ROWS, 128, true);
}

/* As others call it: by the kernels that attention.h chooses. */
static void run_whole(struct check *c, const struct operands *o)
{
    struct attention_args there = forward_args(o);
    struct attention_backward_args back = backward_args(o);
    struct cairn_error err = { 0 };
    k_i64 samples = (k_i64)o->s->samples;
    if (check_ok(c) && (attention_forward(check_gpu(c), NULL, check_storage(c), samples, &there, &err) ||
                        attention_backward(check_gpu(c), NULL, check_storage(c), samples, &back, &err) ||
                        gpu_wait(check_gpu(c), NULL, &err)))
        check_gave_up(c, &err);
}

static void whole(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct operands o = prepare(c, &shapes[i], true);
        run_whole(c, &o);
        check_compare(c, &o.o, o.want_o, slack(c, 4));
        compare_lse(c, &o);
        check_compare(c, &o.dq, o.want_dq, slack(c, 8));
        check_compare(c, &o.dk, o.want_dk, slack(c, 8));
        check_compare(c, &o.dv, o.want_dv, slack(c, 8));
    }
    struct operands o = prepare_nan(c, &shapes[2]);
    run_whole(c, &o);
    check_compare(c, &o.o, o.want_o, slack(c, 4));
}

static void whole_biased(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(biased); i++) {
        struct operands o = prepare(c, &biased[i], false);
        struct attention_args args = forward_args(&o);
        struct cairn_error err = { 0 };
        k_i64 samples = (k_i64)biased[i].samples;
        if (check_ok(c) && (attention_forward(check_gpu(c), NULL, check_storage(c), samples, &args, &err) ||
                            gpu_wait(check_gpu(c), NULL, &err)))
            check_gave_up(c, &err);
        check_compare(c, &o.o, o.want_o, slack(c, 4));
        compare_lse(c, &o);
    }
}

const struct check_case checks_attention[] = {
    { "attention", forward, false },
    { "attention_mma_64", forward_64, false },
    { "attention_mma_128", forward_128, false },
    { "attention_wgmma_64", forward_wgmma_64, false },
    { "attention_wgmma_128", forward_wgmma_128, false },
    { "attention_delta", delta, false },
    { "attention_dq", dq, false },
    { "attention_dq_mma_64", dq_64, false },
    { "attention_dq_mma_128", dq_128, false },
    { "attention_dkv", dkv, false },
    { "attention_dkv_mma_64", dkv_64, false },
    { "attention_dkv_mma_128", dkv_128, false },
    { "attention_dq_wgmma_64", dq_wgmma_64, false },
    { "attention_dq_wgmma_128", dq_wgmma_128, false },
    { "attention_dkv_wgmma_64", dkv_wgmma_64, false },
    { "attention_dkv_wgmma_128", dkv_wgmma_128, false },
    { "attention_whole", whole, false },
    { "attention_biased", whole_biased, false },
};
const size_t n_checks_attention = ARRAY_LEN(checks_attention);
