/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/optim.h"
#include "gpu/optim8.h"
#include <math.h>
#include <string.h>

static const size_t sizes[] = { 1, 300, 4096, 9001 };
enum { STEPS = 3 };
static const double rate = 0.01, decay = 0.1, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-6;

static struct check_tensor zeros_f32(struct check *c, size_t n)
{
    return check_input_f32(c, n, 0);
}

static struct adamw_args make_args(const struct check_tensor *w, const struct check_tensor *g,
                                   const struct check_tensor *m, const struct check_tensor *v)
{
    return (struct adamw_args){ .to = { .w = w->device,
                                        .g = g->f32 ? NULL : g->device,
                                        .g_f32 = g->f32 ? g->device : NULL,
                                        .n = (k_i64)w->n,
                                        .rate = (float)rate,
                                        .decay = (float)decay },
                                .m = m->device,
                                .v = v->device,
                                .beta1 = (float)beta1,
                                .beta2 = (float)beta2,
                                .rest1 = (float)(1 - beta1),
                                .rest2 = (float)(1 - beta2),
                                .epsilon = (float)epsilon };
}

/* Steps with a master copy, so that rounding does not add up; then w is its image. */
static void adamw_size(struct check *c, size_t n, bool f32_gradient)
{
    const float by = 0.5f;
    struct check_tensor master = check_input_f32(c, n, 1), w = check_output(c, n), m = zeros_f32(c, n),
                        v = zeros_f32(c, n);
    double *p = check_numbers(c, &master), *pm = check_numbers(c, &m), *pv = check_numbers(c, &v);
    for (int t = 1; t <= STEPS; t++) {
        struct check_tensor g = f32_gradient ? check_input_f32(c, n, 1) : check_input(c, n, 1);
        struct adamw_args args = make_args(&w, &g, &m, &v);
        args.to.master = master.device;
        args.to.by = check_bytes(c, &by, sizeof(by));
        args.correction1 = (float)(1 - pow(beta1, t)), args.correction2 = (float)(1 - pow(beta2, t));
        CHECK_LAUNCH(c, "adamw", ((struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }), args);
        for (size_t i = 0; i < n; i++) {
            double gi = 0.5 * g.host[i];
            p[i] *= 1 - rate * decay;
            pm[i] = beta1 * pm[i] + (1 - beta1) * gi;
            pv[i] = beta2 * pv[i] + (1 - beta2) * gi * gi;
            p[i] -= rate / (1 - pow(beta1, t)) * pm[i] / (sqrt(pv[i] / (1 - pow(beta2, t))) + epsilon);
        }
    }
    check_compare(c, &master, p, 8);
    check_compare(c, &m, pm, 8);
    check_compare(c, &v, pv, 16);
    check_compare(c, &w, p, 8);
}

static void adamw(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        adamw_size(c, sizes[i], i % 2);
    /* Not finite: nothing moves. */
    const float by = NAN;
    struct check_tensor w = check_input(c, 100, 1), g = check_input(c, 100, 1), m = zeros_f32(c, 100),
                        v = zeros_f32(c, 100);
    struct adamw_args args = make_args(&w, &g, &m, &v);
    args.to.by = check_bytes(c, &by, sizeof(by));
    args.correction1 = args.correction2 = 1;
    double *same = check_numbers(c, &w);
    CHECK_LAUNCH(c, "adamw", ((struct gpu_grid){ .x = 1 }), args);
    check_compare(c, &w, same, 0.001);
}

/* Weights of 16 bits and steps far smaller than their spacing: rounded by chance they move right on
 * average. */
static void adamw_stochastic(struct check *c)
{
    enum { N = 1 << 16 };
    if (check_storage(c) == GPU_F32)
        return;
    struct check_tensor w = check_input(c, N, 1), g = check_input(c, N, 0), m = zeros_f32(c, N),
                        v = zeros_f32(c, N);
    double *was = check_numbers(c, &w), moved = 0, want = 0;
    const double share = check_storage(c) == GPU_BF16 ? 2e-4 : 2e-5;
    struct adamw_args args = make_args(&w, &g, &m, &v);
    args.to.decay = (float)(share / rate), args.to.stochastic = 1, args.to.seed = 5, args.to.stream = 1;
    args.correction1 = args.correction2 = 1;
    CHECK_LAUNCH(c, "adamw", ((struct gpu_grid){ .x = (unsigned)K_GROUPS(N) }), args);
    check_fetch(c, &w);
    for (size_t i = 0; i < N && check_ok(c); i++) {
        moved += fabs(was[i]) - fabs(w.host[i]), want += share * fabs(was[i]);
        if (fabs(w.host[i] - was[i]) > fabs(was[i]) / 64 + 1e-7)
            check_complain(c, "element %zu went from %g to %g", i, was[i], (double)w.host[i]);
    }
    if (check_ok(c) && fabs(moved / want - 1) > 0.1)
        check_complain(c, "moved by %.2f of the expected average", moved / want);
}

static void lion(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        size_t n = sizes[s];
        struct check_tensor w = check_input(c, n, 1), g = check_input(c, n, 1), m = check_input_f32(c, n, 1),
                            v = zeros_f32(c, 1);
        double *p = check_numbers(c, &w), *pm = check_numbers(c, &m);
        struct adamw_args args = make_args(&w, &g, &m, &v);
        CHECK_LAUNCH(c, "lion", ((struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }), args);
        for (size_t i = 0; i < n; i++) {
            double u = beta1 * pm[i] + (1 - beta1) * g.host[i];
            p[i] = p[i] * (1 - rate * decay) - rate * (u > 0 ? 1 : u < 0 ? -1 : 0);
            pm[i] = beta2 * pm[i] + (1 - beta2) * g.host[i];
        }
        check_compare(c, &w, p, 4);
        check_compare(c, &m, pm, 8);
    }
}

/* Three steps of Prodigy over two arrays, with a master copy; the d of one step is that of the next. */
struct prodigy_run {
    struct check_tensor master[2], w[2], m[2], v[2], s[2];
    double *p[2], *start[2], *pm[2], *pv[2], *ps[2];
    double d, most, sum;
    void *parts, *device_d;
};
static const double d0 = 0.1, beta3 = 0.995;

static void prodigy_define(struct prodigy_run *r, const struct check_tensor *g, const size_t *n)
{
    double dot = 0, size = 0, was = r->d;
    for (int a = 0; a < 2; a++)
        for (size_t i = 0; i < n[a]; i++) {
            double gi = g[a].host[i];
            dot += gi * (r->start[a][i] - r->p[a][i]);
            r->pm[a][i] = beta1 * r->pm[a][i] + (1 - beta1) * was * gi;
            r->pv[a][i] = beta2 * r->pv[a][i] + (1 - beta2) * was * was * gi * gi;
            r->ps[a][i] = beta3 * r->ps[a][i] + was / d0 * was * rate * gi;
            size += fabs(r->ps[a][i]);
        }
    r->sum = beta3 * r->sum + was / d0 * was * rate * dot;
    double estimate = 400 * r->sum / size;
    r->d = was == d0 ? fmax(was, estimate) : was;
    r->most = fmax(r->most, estimate);
    r->d = fmin(r->most, r->d * 1.5);
    for (int a = 0; a < 2; a++)
        for (size_t i = 0; i < n[a]; i++)
            r->p[a][i] = r->p[a][i] * (1 - rate * was * decay) -
                         rate * was * r->pm[a][i] / (sqrt(r->pv[a][i]) + r->d * epsilon);
}

static void prodigy_step(struct check *c, struct prodigy_run *r, const struct check_tensor *g)
{
    size_t first = K_GROUPS(r->w[0].n);
    struct prodigy_grow_args grow = { .parts = r->parts,
                                      .d = r->device_d,
                                      .n = (k_i64)(first + K_GROUPS(r->w[1].n)),
                                      .beta3 = (float)beta3,
                                      .rate = (float)rate,
                                      .first = (float)d0,
                                      .by_hand = 400,
                                      .growth = 1.5f };
    for (int pass = 0; pass < 2; pass++) {
        for (int a = 0; a < 2; a++) {
            struct adamw_args like = make_args(&r->w[a], &g[a], &r->m[a], &r->v[a]);
            struct prodigy_args args = { .to = like.to,
                                         .m = like.m,
                                         .v = like.v,
                                         .s = r->s[a].device,
                                         .parts = (float *)r->parts + (a ? 2 * first : 0),
                                         .d = r->device_d,
                                         .beta1 = like.beta1,
                                         .beta2 = like.beta2,
                                         .rest1 = like.rest1,
                                         .rest2 = like.rest2,
                                         .beta3 = (float)beta3,
                                         .epsilon = like.epsilon,
                                         .first = (float)d0 };
            struct gpu_grid grid = { .x = (unsigned)K_GROUPS(r->w[a].n) };
            args.to.master = r->master[a].device;
            args.start = check_bytes(c, r->master[a].host, r->w[a].n * sizeof(float));
            CHECK_LAUNCH(c, pass ? "prodigy" : "prodigy_look", grid, args);
        }
        if (!pass)
            CHECK_LAUNCH(c, "prodigy_grow", ((struct gpu_grid){ .x = 1 }), grow);
    }
}

static void prodigy_sizes(struct check *c, const size_t *n)
{
    struct prodigy_run r = { .d = d0, .most = d0 };
    const float d[PRODIGY_NUMBERS] = { (float)d0, (float)d0 };
    struct check_tensor parts = check_output_f32(c, 2 * (K_GROUPS(n[0]) + K_GROUPS(n[1]))), g[2], kept;
    for (int a = 0; a < 2; a++) {
        r.master[a] = check_input_f32(c, n[a], 1);
        r.w[a] = check_output(c, n[a]);
        r.m[a] = zeros_f32(c, n[a]), r.v[a] = zeros_f32(c, n[a]), r.s[a] = zeros_f32(c, n[a]);
        r.p[a] = check_numbers(c, &r.master[a]), r.start[a] = check_numbers(c, &r.master[a]);
        r.pm[a] = check_zeros(c, n[a]), r.pv[a] = check_zeros(c, n[a]), r.ps[a] = check_zeros(c, n[a]);
        g[a] = check_input_f32(c, n[a], 1); /* the same in every step: there is somewhere to go */
    }
    r.parts = parts.device;
    r.device_d = check_bytes(c, d, sizeof(d));
    kept = (struct check_tensor){ .n = 1, .f32 = true, .host = &(float){ 0 }, .device = r.device_d };
    for (int t = 1; t <= STEPS && check_ok(c); t++) {
        prodigy_step(c, &r, g);
        prodigy_define(&r, g, n);
    }
    if (check_ok(c) && !(r.d > 1.2 * d0))
        check_complain(c, "d stays at %g: the check is inconclusive", r.d);
    check_compare(c, &kept, &r.d, 64);
    for (int a = 0; a < 2; a++) {
        check_compare(c, &r.master[a], r.p[a], 8);
        check_compare(c, &r.w[a], r.p[a], 8);
        check_compare(c, &r.m[a], r.pm[a], 64);
        check_compare(c, &r.s[a], r.ps[a], 64);
    }
}

static void prodigy(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        prodigy_sizes(c, (const size_t[]){ sizes[i], sizes[ARRAY_LEN(sizes) - 1 - i] });
}

/* ---- 8 bits ---- */

/* The blocks' maxima, and for each number a code that no other comes nearer to it than; where two are as
 * near, to 1e-6, either will do.  What is below 0 keeps its sign. */
static void check_blocks(struct check *c, const float *table, const double *x, size_t n, const uint8_t *codes,
                         double *max)
{
    for (size_t i = 0; i < n; i++) {
        double *most = &max[i / OPTIM8_BLOCK];
        *most = i % OPTIM8_BLOCK ? fmax(*most, fabs(x[i])) : fabs(x[i]);
    }
    for (size_t i = 0; i < n && check_ok(c); i++) {
        double value = max[i / OPTIM8_BLOCK] > 0 ? x[i] / max[i / OPTIM8_BLOCK] : 0, nearest = INFINITY;
        for (int code = 0; code < 256; code++)
            if (value >= 0 || table[code] < 0)
                nearest = fmin(nearest, fabs(table[code] - value));
        if (fabs(table[codes[i]] - value) > nearest + 1e-6 * fabs(value) ||
            (value < 0 && table[codes[i]] >= 0))
            check_complain(c, "element %zu, %.9g of its block, becomes %.9g", i, value,
                           (double)table[codes[i]]);
    }
}

static void adamw8_size(struct check *c, size_t n)
{
    static uint8_t m_codes[9001], v_codes[9001];
    static float tables[OPTIM8_TABLES];
    size_t blocks = (n + OPTIM8_BLOCK - 1) / OPTIM8_BLOCK;
    optim8_tables(tables);
    memset(m_codes, OPTIM8_ZERO_M, sizeof(m_codes));
    memset(v_codes, OPTIM8_ZERO_V, sizeof(v_codes));
    struct check_tensor w = check_input(c, n, 1), g = check_input(c, n, 1), m_max = zeros_f32(c, blocks),
                        v_max = zeros_f32(c, blocks);
    struct adamw8_args args = {
        .to = { .w = w.device, .g = g.device, .n = (k_i64)n, .rate = (float)rate, .decay = (float)decay },
        .m = check_bytes(c, m_codes, n),
        .v = check_bytes(c, v_codes, n),
        .m_max = m_max.device,
        .v_max = v_max.device,
        .tables = check_bytes(c, tables, sizeof(tables)),
        .beta1 = (float)beta1,
        .beta2 = (float)beta2,
        .rest1 = (float)(1 - beta1),
        .rest2 = (float)(1 - beta2),
        .epsilon = (float)epsilon,
        .correction1 = (float)(1 - beta1),
        .correction2 = (float)(1 - beta2)
    };
    CHECK_LAUNCH(c, "adamw8", ((struct gpu_grid){ .x = (unsigned)blocks }), args);
    double *p = check_numbers(c, &w), *m = check_doubles(c, n), *v = check_doubles(c, n),
           *max_m = check_doubles(c, blocks), *max_v = check_doubles(c, blocks);
    for (size_t i = 0; i < n; i++) {
        m[i] = (1 - beta1) * g.host[i];
        v[i] = (1 - beta2) * (double)g.host[i] * g.host[i];
        p[i] -= rate * sqrt(1 - beta2) / (1 - beta1) * m[i] / (sqrt(v[i]) + sqrt(1 - beta2) * epsilon);
        p[i] *= 1 - rate * decay;
    }
    check_read_bytes(c, m_codes, args.m, n);
    check_read_bytes(c, v_codes, args.v, n);
    check_blocks(c, tables, m, n, m_codes, max_m);
    check_blocks(c, tables + 512, v, n, v_codes, max_v);
    check_compare(c, &w, p, 8);
    check_compare(c, &m_max, max_m, 16);
    check_compare(c, &v_max, max_v, 16);
}

static void adamw8(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        adamw8_size(c, sizes[i]);
}

/* ---- norm, clipping, average ---- */

static void norm_of(struct check *c, struct check_tensor *x, float max_norm)
{
    size_t groups = K_GROUPS(x->n);
    struct check_tensor parts = check_output_f32(c, groups), y = check_output_f32(c, 2);
    struct square_sum_args args = { .parts = parts.device, .x = x->device, .n = (k_i64)x->n };
    struct clip_args clip = {
        .y = y.device, .parts = parts.device, .n = (k_i64)groups, .max_norm = max_norm, .unscale = 0.5f
    };
    CHECK_LAUNCH(c, "square_sum", ((struct gpu_grid){ .x = (unsigned)groups }), args);
    CHECK_LAUNCH(c, "clip", ((struct gpu_grid){ .x = 1 }), clip);
    double sum = 0;
    for (size_t i = 0; i < x->n; i++)
        sum += (double)x->host[i] * x->host[i];
    double norm = 0.5 * sqrt(sum);
    double factor = 0.5 * (max_norm > 0 && norm > max_norm ? max_norm / (norm + 1e-6) : 1);
    check_fetch(c, &y);
    if (check_ok(c) &&
        (!(fabs(y.host[0] - norm) <= 1e-6 * norm) || !(fabs(y.host[1] - factor) <= 1e-6 * factor)))
        check_complain(c, "norm %.9g and factor %.9g, not %.9g and %.9g", (double)y.host[0],
                       (double)y.host[1], norm, factor);
}

static void square_sum(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct check_tensor x = check_input(c, sizes[i], 1);
        norm_of(c, &x, 0);
    }
}

/* A number whose square is 10^8 times that of the million others. */
static void clip(struct check *c)
{
    enum { N = 1 << 20 };
    static float values[N];
    for (size_t i = 0; i < N; i++)
        values[i] = i == N / 3 ? 1e4f : 1.0f;
    struct check_tensor x = check_values(c, N, values);
    norm_of(c, &x, 1);
    norm_of(c, &x, 1e6f);
    values[7] = INFINITY;
    x = check_values(c, N, values);
    struct check_tensor parts = check_output_f32(c, K_GROUPS(N)), y = check_output_f32(c, 2);
    struct square_sum_args args = { .parts = parts.device, .x = x.device, .n = N };
    struct clip_args last = {
        .y = y.device, .parts = parts.device, .n = K_GROUPS(N), .max_norm = 1, .unscale = 1
    };
    CHECK_LAUNCH(c, "square_sum", ((struct gpu_grid){ .x = K_GROUPS(N) }), args);
    CHECK_LAUNCH(c, "clip", ((struct gpu_grid){ .x = 1 }), last);
    check_fetch(c, &y);
    if (check_ok(c) && !isnan(y.host[1]))
        check_complain(c, "an infinite gradient gives the factor %g, not NaN", (double)y.host[1]);
}

static void ema(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        size_t n = sizes[s];
        struct check_tensor w = check_input(c, n, 1), average = check_input_f32(c, n, 1);
        struct ema_args args = { .average = average.device, .w = w.device, .n = (k_i64)n, .decay = 0.9375f };
        double *want = check_doubles(c, n);
        for (size_t i = 0; i < n; i++)
            want[i] = 0.9375 * average.host[i] + 0.0625 * w.host[i];
        CHECK_LAUNCH(c, "ema", ((struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }), args);
        check_compare(c, &average, want, 4);
    }
}

const struct check_case checks_optim[] = {
    { "adamw", adamw, false },   { "adamw", adamw_stochastic, false }, { "lion", lion, false },
    { "adamw8", adamw8, false }, { "square_sum", square_sum, false },  { "clip", clip, false },
    { "ema", ema, false },       { "prodigy", prodigy, false },
};
const size_t n_checks_optim = ARRAY_LEN(checks_optim);
