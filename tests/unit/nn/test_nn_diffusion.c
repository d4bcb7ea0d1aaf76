/* SPDX-License-Identifier: Apache-2.0
 * The ops of a diffusion transformer against plain loops: modulated norms, gates, SiLU, patch embedding, squared error. */
#include "check.h"
#include "nn/nn.h"
#include "nn/weights.h"
#include <math.h>

static struct rig {
    struct gpu *g;
    struct nn nn;
    struct arena arena;
    uint32_t state;
} rig;
static struct cairn_error err;

static void open_rig(enum gpu_storage storage)
{
    rig = (struct rig){ .state = 1 };
    CHECK(!gpu_open("cpu", &rig.g, &err));
    CHECK(!nn_open(&rig.nn, rig.g, storage, &err));
}

static void close_rig(void)
{
    arena_release(&rig.arena);
    nn_close(&rig.nn);
    gpu_close(rig.g);
}

static float *numbers(size_t n)
{
    float *x = ARENA_NEW(&rig.arena, float, n);
    for (size_t i = 0; i < n; i++) {
        rig.state = rig.state * 1664525 + 1013904223;
        x[i] = (float)(rig.state >> 24) / 128 - 1;
    }
    return x;
}

static float *zeros(size_t n)
{
    return ARENA_NEW(&rig.arena, float, n);
}

/* A tensor in the storage format; these numbers have few bits, so that every format holds them. */
static void *stored(const float *x, size_t n)
{
    void *p = ARENA_NEW(&rig.arena, float, n);
    dtype_convert(p, storage_dtype(rig.nn.storage), x, DTYPE_F32, n, &(struct dtype_how){ 0 });
    return p;
}

static void compare(const char *what, const float *got, const double *want, size_t n, double most)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)got[i] - want[i]));
        largest = fmax(largest, fabs(want[i]));
    }
    CHECK(largest > 0.01);
    if (!(worst <= most * fmax(largest, 1)))
        CHECK_FAIL_("%s is off by %g of %g", what, worst, largest);
}

static void compare_stored(const char *what, const void *got, const double *want, size_t n)
{
    float *x = zeros(n);
    dtype_convert(x, DTYPE_F32, got, storage_dtype(rig.nn.storage), n, &(struct dtype_how){ 0 });
    compare(what, x, want, n, rig.nn.storage == GPU_F32 ? 1e-5 : 1e-2);
}

static double *doubles(size_t n)
{
    return ARENA_NEW(&rig.arena, double, n);
}

/* ---- times ---- */

static void run_small_linear(size_t rows, size_t in, size_t out, bool silu)
{
    float *x = numbers(rows * in), *w = numbers(out * in), *bias = numbers(out), *y = zeros(rows * out);
    double *want = doubles(rows * out);
    for (size_t i = 0; i < rows * out; i++) {
        want[i] = (double)bias[i % out];
        for (size_t k = 0; k < in; k++) {
            double v = (double)x[i / out * in + k];
            want[i] += (silu ? v / (1 + exp(-v)) : v) * (double)w[i % out * in + k];
        }
    }
    struct nn_small_linear l = { x, stored(w, out * in), bias, y, rows, in, out, silu };
    CHECK(!nn_small_linear(&rig.nn, &l, &err));
    compare("y", y, want, rows * out, 1e-5);
}

/* The sums are f32 whatever the storage. */
static void small_linears_sum_in_f32(void)
{
    static const enum gpu_storage storages[] = { GPU_F32, GPU_BF16, GPU_F16 };
    for (size_t i = 0; i < ARRAY_LEN(storages); i++) {
        open_rig(storages[i]);
        run_small_linear(1, 256, 1536, false);
        run_small_linear(3, 1536, 130, true);
        run_small_linear(7, 5, 3, true);
        run_small_linear(21, 700, 45, false);
        close_rig();
    }
}

static void run_modulation(size_t sets, size_t parts, size_t add_parts, size_t columns)
{
    size_t each = add_parts > 1 ? parts : 1, n = parts * sets * columns;
    float *x = numbers(parts * columns), *add = numbers(sets * each * columns), *y = zeros(n);
    double *want = doubles(n);
    for (size_t p = 0; p < parts; p++)
        for (size_t s = 0; s < sets; s++)
            for (size_t c = 0; c < columns; c++)
                want[(p * sets + s) * columns + c] =
                    (double)x[p * columns + c] + (double)add[(s * each + (each > 1 ? p : 0)) * columns + c];
    struct nn_modulation m = { y, x, add, sets, parts, columns, add_parts };
    CHECK(!nn_modulation(&rig.nn, &m, &err));
    compare("y", y, want, n, 1e-7);
}

static void modulations_are_made_for_each_set(void)
{
    open_rig(GPU_BF16); /* all of it is f32 */
    run_modulation(1, 6, 6, 1536);
    run_modulation(3, 6, 6, 40);
    run_modulation(5, 2, 1, 33);
    run_modulation(2, 2, 0, 24);
    close_rig();
}

/* ---- modulated norms ---- */

struct norm_case {
    enum nn_norm_kind kind;
    size_t sets, rows_per_set, columns;
    bool side_by_side; /* the gradients of scale and shift */
};

/* One row: y, and from dy the gradients. */
static void norm_row(const struct norm_case *c, const float *x, const float *w, const float *b,
                     const float *dy, double *y, double *dx, double *dw, double *db)
{
    size_t n = c->columns;
    double mean = 0, square = 0, dot = 0, sum = 0;
    for (size_t i = 0; i < n && c->kind == NN_NORM_LAYER; i++)
        mean += (double)x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        square += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
    double rstd = 1 / sqrt(square + 1e-6);
    for (size_t i = 0; i < n; i++) {
        double hat = ((double)x[i] - mean) * rstd, g = (double)dy[i] * (1 + (double)w[i]);
        y[i] = hat * (1 + (double)w[i]) + (b ? (double)b[i] : 0);
        dw[i] += (double)dy[i] * hat;
        db[i] += (double)dy[i];
        dot += g * hat / (double)n;
        sum += c->kind == NN_NORM_LAYER ? g / (double)n : 0;
    }
    for (size_t i = 0; i < n; i++) {
        double hat = ((double)x[i] - mean) * rstd, g = (double)dy[i] * (1 + (double)w[i]);
        dx[i] = rstd * (g - sum - hat * dot);
    }
}

static void run_norm(const struct norm_case *c)
{
    size_t rows = c->sets * c->rows_per_set, n = rows * c->columns, m = c->sets * c->columns;
    bool layer = c->kind == NN_NORM_LAYER;
    float *x = numbers(n), *w = numbers(m), *b = layer ? numbers(m) : NULL, *dy = numbers(n);
    float *grads = zeros(2 * m + 1), *dw = grads, *db = layer ? grads + m + !c->side_by_side : NULL;
    double *y = doubles(n), *dx = doubles(n), *want_dw = doubles(m), *want_db = doubles(m);
    for (size_t r = 0; r < rows; r++) {
        size_t at = r * c->columns, set = r / c->rows_per_set * c->columns;
        norm_row(c, x + at, w + set, b ? b + set : NULL, dy + at, y + at, dx + at, want_dw + set,
                 want_db + set);
    }
    struct nn_norm norm = {
        .kind = c->kind,
        .x = stored(x, n),
        .y = zeros(n),
        .w = w,
        .b = b,
        .mean = zeros(rows),
        .rstd = zeros(rows),
        .rows = rows,
        .columns = c->columns,
        .rows_per_w = c->rows_per_set,
        .epsilon = 1e-6f,
        .w_plus = 1,
    };
    struct nn_norm_back back = { .dy = stored(dy, n), .dx = zeros(n), .dw = dw, .db = db };
    CHECK(!nn_reserve_sets(&rig.nn, c->sets, c->rows_per_set, c->columns, &err));
    CHECK(!nn_norm(&rig.nn, &norm, &err));
    CHECK(!nn_norm_back(&rig.nn, &norm, &back, &err));
    compare_stored("y", norm.y, y, n);
    compare_stored("dx", back.dx, dx, n);
    compare("dw", dw, want_dw, m, 1e-4);
    if (db)
        compare("db", db, want_db, m, 1e-4);
}

static void every_norm(enum gpu_storage storage)
{
    static const struct norm_case cases[] = {
        { NN_NORM_LAYER, 1, 5, 24, false },   { NN_NORM_LAYER, 3, 7, 40, true },
        { NN_NORM_LAYER, 2, 150, 33, false }, { NN_NORM_LAYER, 40, 1, 16, true },
        { NN_NORM_RMS, 3, 70, 24, false },
    };
    open_rig(storage);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        run_norm(&cases[i]);
    close_rig();
}

static void norms_are_modulated_in_sets(void)
{
    every_norm(GPU_F32);
    every_norm(GPU_BF16);
}

/* The gradients that norm_row wants, by differences of its y. */
static void norm_gradients_are_differences(void)
{
    enum { N = 24 };
    static const float step = 1.0f / 256;
    open_rig(GPU_F32);
    for (int kind = NN_NORM_LAYER; kind <= NN_NORM_RMS; kind++) {
        struct norm_case c = { (enum nn_norm_kind)kind, 1, 1, N, false };
        float *x = numbers(N), *w = numbers(N), *dy = numbers(N);
        double y[2][N], dx[N], unused[N], dw[N] = { 0 }, db[N] = { 0 };
        norm_row(&c, x, w, NULL, dy, y[0], dx, dw, db);
        for (size_t i = 0; i < N; i++) {
            double slope = 0;
            for (int side = 0; side < 2; side++) {
                x[i] += side ? -2 * step : step;
                norm_row(&c, x, w, NULL, dy, y[side], unused, dw, db);
            }
            x[i] += step;
            for (size_t k = 0; k < N; k++)
                slope += (double)dy[k] * (y[0][k] - y[1][k]) / (2 * (double)step);
            CHECK(fabs(slope - dx[i]) < 1e-4);
        }
    }
    close_rig();
}

struct frozen_case {
    enum nn_norm_kind kind;
    size_t rows, columns, rows_per_w; /* rows_per_w 0: no w and b */
};

/* A norm of a stream whose w and b, if any, are not trained: dx is added to.  A wide stream is f32. */
static void run_frozen_norm(const struct frozen_case *c, bool wide)
{
    size_t per = c->rows_per_w ? c->rows_per_w : c->rows, sets = (c->rows + per - 1) / per;
    size_t n = c->rows * c->columns, m = sets * c->columns;
    float *x = numbers(n), *w = c->rows_per_w ? numbers(m) : zeros(m), *b = c->rows_per_w ? numbers(m) : NULL,
          *dy = numbers(n), *dx = numbers(n);
    double *y = doubles(n), *want = doubles(n), *dw = doubles(m), *db = doubles(m);
    struct norm_case one = { .kind = c->kind, .columns = c->columns };
    for (size_t i = 0; i < n && wide; i++)
        x[i] += (float)(i % 7) * 1e-4f; /* more digits than the storage has */
    for (size_t r = 0; r < c->rows; r++) {
        size_t at = r * c->columns, set = r / per * c->columns;
        norm_row(&one, x + at, w + set, b ? b + set : NULL, dy + at, y + at, want + at, dw + set, db + set);
    }
    for (size_t i = 0; i < n; i++)
        want[i] += (double)dx[i];
    struct nn_norm norm = {
        .kind = c->kind,
        .x = wide ? x : stored(x, n),
        .y = zeros(n),
        .w = c->rows_per_w ? w : NULL,
        .b = b,
        .mean = c->kind == NN_NORM_LAYER ? zeros(c->rows) : NULL,
        .rstd = zeros(c->rows),
        .rows = c->rows,
        .columns = c->columns,
        .rows_per_w = c->rows_per_w,
        .epsilon = 1e-6f,
        .w_plus = 1,
        .wide = wide,
    };
    struct nn_norm_back back = { .dy = stored(dy, n), .dx = wide ? dx : stored(dx, n), .add = true };
    CHECK(!nn_norm(&rig.nn, &norm, &err));
    CHECK(
        !nn_norm_back(&rig.nn, &norm, &back, &err)); /* nothing was reserved: without dw there are no sums */
    compare_stored("y", norm.y, y, n);
    if (wide)
        compare("dx", dx, want, n, 1e-5);
    else
        compare_stored("dx", back.dx, want, n);
}

static void frozen_norms_are_there_and_back(void)
{
    static const enum gpu_storage storages[] = { GPU_F32, GPU_BF16, GPU_F16 };
    static const struct frozen_case cases[] = {
        { NN_NORM_LAYER, 5, 24, 0 },   { NN_NORM_LAYER, 21, 40, 7 }, { NN_NORM_LAYER, 6, 5120, 2 },
        { NN_NORM_LAYER, 3, 1537, 0 }, { NN_NORM_RMS, 4, 5120, 4 },  { NN_NORM_RMS, 9, 33, 0 },
    };
    for (size_t s = 0; s < ARRAY_LEN(storages); s++) {
        open_rig(storages[s]);
        for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++)
            run_frozen_norm(&cases[i / 2], i % 2);
        close_rig();
    }
}

/* ---- gates ---- */

static void run_gate(size_t sets, size_t rows_per_gate, size_t columns, bool with_x)
{
    size_t rows = sets * rows_per_gate, n = rows * columns, m = sets * columns;
    float *x = numbers(n), *z = numbers(n), *gate = numbers(m), *dy = numbers(n), *dgate = zeros(m);
    double *y = doubles(n), *dz = doubles(n), *want = doubles(m);
    for (size_t i = 0; i < n; i++) {
        size_t at = i / columns / rows_per_gate * columns + i % columns;
        y[i] = (with_x ? (double)x[i] : 0) + (double)gate[at] * (double)z[i];
        dz[i] = (double)gate[at] * (double)dy[i];
        want[at] += (double)dy[i] * (double)z[i];
    }
    struct nn_gate g = {
        .y = zeros(n),
        .x = with_x ? stored(x, n) : NULL,
        .z = stored(z, n),
        .gate = gate,
        .rows = rows,
        .columns = columns,
        .rows_per_gate = sets == 1 ? 0 : rows_per_gate,
    };
    struct nn_gate_back back = { .dy = stored(dy, n), .dgate = dgate };
    back.dz = (void *)g.z; /* in place of z, which the gradient of the gates needs first */
    CHECK(!nn_reserve_sets(&rig.nn, sets, rows_per_gate, columns, &err));
    CHECK(!nn_gate(&rig.nn, &g, &err));
    CHECK(!nn_gate_back(&rig.nn, &g, &back, &err));
    compare_stored("y", g.y, y, n);
    compare_stored("dz", back.dz, dz, n);
    compare("dgate", dgate, want, m, 1e-4);
}

static void every_gate(enum gpu_storage storage)
{
    open_rig(storage);
    run_gate(1, 9, 20, true);
    run_gate(3, 5, 20, true);
    run_gate(2, 200, 33, false);
    run_gate(70, 1, 8, true);
    close_rig();
}

static void gates_are_there_and_back(void)
{
    every_gate(GPU_F32);
    every_gate(GPU_BF16);
}

/* stream += gate z, and dz from the gradient of the stream; no gate is a gate of 1. */
static void run_stream_gate(size_t sets, size_t rows_per_gate, size_t columns, bool gated, bool wide)
{
    size_t rows = sets * rows_per_gate, n = rows * columns, m = sets * columns;
    float *x = numbers(n), *z = numbers(n), *gate = numbers(m), *dy = numbers(n);
    double *y = doubles(n), *dz = doubles(n);
    for (size_t i = 0; i < n; i++)
        x[i] += wide ? 1e-4f : 0;
    for (size_t i = 0; i < n; i++) {
        double factor = gated ? (double)gate[i / columns / rows_per_gate * columns + i % columns] : 1;
        y[i] = (double)x[i] + factor * (double)z[i];
        dz[i] = factor * (double)dy[i];
    }
    void *stream = wide ? x : stored(x, n);
    struct nn_gate g = {
        .y = stream,
        .x = stream,
        .z = stored(z, n),
        .gate = gated ? gate : NULL,
        .rows = rows,
        .columns = columns,
        .rows_per_gate = sets == 1 ? 0 : rows_per_gate,
        .wide = wide,
    };
    struct nn_gate_back back = { .dy = wide ? dy : stored(dy, n), .dz = (void *)g.z };
    CHECK(!nn_gate(&rig.nn, &g, &err));
    CHECK(!nn_gate_back(&rig.nn, &g, &back, &err));
    if (wide)
        compare("y", stream, y, n, 1e-6);
    else
        compare_stored("y", stream, y, n);
    compare_stored("dz", back.dz, dz, n);
}

static void streams_may_be_wide(void)
{
    static const enum gpu_storage storages[] = { GPU_F32, GPU_BF16, GPU_F16 };
    for (size_t s = 0; s < ARRAY_LEN(storages); s++) {
        open_rig(storages[s]);
        for (int i = 0; i < 4; i++) {
            run_stream_gate(1, 9, 20, i & 1, i & 2);
            run_stream_gate(3, 5, 33, i & 1, i & 2);
            run_stream_gate(2, 3, 5120, i & 1, i & 2);
        }
        close_rig();
    }
}

/* ---- activations ---- */

static double gelu_erf_of(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2));
}

/* Its error is less than 1e-6, of x where that is more than 1. */
static void exact_gelu_is_exact(void)
{
    enum { N = 40001 };
    open_rig(GPU_F32);
    float *x = zeros(N), *y = zeros(N);
    for (size_t i = 0; i < N; i++)
        x[i] = ((float)i - 20000) / 1500;
    CHECK(!nn_gelu_erf(&rig.nn, y, x, N, &err));
    for (size_t i = 0; i < N; i++) {
        double want = gelu_erf_of((double)x[i]), off = fabs((double)y[i] - want);
        if (!(off <= 1e-6 * fmax(1, fabs(want))) || (x[i] < 0 && x[i] > -8 && !(off < 1e-5 * fabs(want))))
            CHECK_FAIL_("gelu(%g) is off by %g", (double)x[i], off);
    }
    float edges[] = { -1e30f, 1e30f, -60, 60, 0, INFINITY };
    CHECK(!nn_gelu_erf(&rig.nn, edges, edges, ARRAY_LEN(edges), &err));
    CHECK(edges[0] == 0 && edges[1] == 1e30f && edges[2] == 0 && edges[3] == 60 && edges[4] == 0);
    CHECK(isinf(edges[5]));
    close_rig();
}

static void exact_gelu_is_stored(void)
{
    enum { N = 5003 };
    open_rig(GPU_BF16);
    float *x = numbers(N);
    double *want = doubles(N);
    for (size_t i = 0; i < N; i++)
        want[i] = gelu_erf_of((double)x[i]);
    void *y = stored(x, N);
    CHECK(!nn_gelu_erf(&rig.nn, y, y, N, &err));
    compare_stored("y", y, want, N);
    close_rig();
}

static void every_silu(enum gpu_storage storage)
{
    enum { N = 5003 };
    open_rig(storage);
    float *x = numbers(N), *dy = numbers(N);
    double *y = doubles(N), *dx = doubles(N);
    for (size_t i = 0; i < N; i++) {
        double s = 1 / (1 + exp(-(double)x[i]));
        y[i] = (double)x[i] * s;
        dx[i] = (double)dy[i] * s * (1 + (double)x[i] * (1 - s));
    }
    void *sx = stored(x, N), *sy = zeros(N), *d = stored(dy, N);
    CHECK(!nn_silu(&rig.nn, sy, sx, N, &err));
    CHECK(!nn_silu_back(&rig.nn, d, d, sx, N, &err));
    compare_stored("y", sy, y, N);
    compare_stored("dx", d, dx, N);
    close_rig();
}

static void silu_is_there_and_back(void)
{
    every_silu(GPU_F32);
    every_silu(GPU_BF16);
}

/* ---- patches ---- */

struct patch_case {
    size_t samples, channels, out;
    struct conv_size in, patch;
};

/* Number k of a patch: channels are slowest, then t, h and w. */
static size_t pixel_of(const struct patch_case *c, size_t sample, size_t patch, size_t k)
{
    size_t t = (size_t)c->in.t, h = (size_t)c->in.h, w = (size_t)c->in.w;
    size_t pt = (size_t)c->patch.t, ph = (size_t)c->patch.h, pw = (size_t)c->patch.w, across = w / pw,
           down = h / ph;
    size_t x = patch % across * pw + k % pw, y = patch / across % down * ph + k / pw % ph;
    size_t z = patch / across / down * pt + k / pw / ph % pt, channel = k / pw / ph / pt;
    return (((sample * c->channels + channel) * t + z) * h + y) * w + x;
}

static void run_patches(const struct patch_case *c)
{
    size_t volume = (size_t)(c->in.t * c->in.h * c->in.w),
           part = (size_t)(c->patch.t * c->patch.h * c->patch.w);
    size_t patches = volume / part, k = c->channels * part, rows = c->samples * patches;
    float *x = numbers(c->samples * c->channels * volume), *w = numbers(c->out * k), *bias = numbers(c->out),
          *dy = numbers(rows * c->out), *dw = zeros(c->out * k), *dbias = zeros(c->out);
    double *y = doubles(rows * c->out), *want_dw = doubles(c->out * k), *want_dbias = doubles(c->out);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < c->out; o++) {
            y[r * c->out + o] = (double)bias[o];
            want_dbias[o] += (double)dy[r * c->out + o];
            for (size_t i = 0; i < k; i++) {
                double v = (double)x[pixel_of(c, r / patches, r % patches, i)];
                y[r * c->out + o] += v * (double)w[o * k + i];
                want_dw[o * k + i] += v * (double)dy[r * c->out + o];
            }
        }
    struct nn_patches p = {
        .x = stored(x, c->samples * c->channels * volume),
        .w = stored(w, c->out * k),
        .bias = bias,
        .y = zeros(rows * c->out),
        .samples = c->samples,
        .channels = c->channels,
        .out = c->out,
        .in = c->in,
        .patch = c->patch,
    };
    struct nn_patches_back back = { .dy = stored(dy, rows * c->out), .dw = dw, .dbias = dbias };
    p.scratch = arena_alloc(&rig.arena, nn_patches_scratch(&rig.nn, &p));
    CHECK(!nn_reserve(&rig.nn, rows, c->out, &err));
    CHECK(!nn_patches(&rig.nn, &p, &err));
    CHECK(!nn_patches_back(&rig.nn, &p, &back, &err));
    compare_stored("y", p.y, y, rows * c->out);
    compare("dw", dw, want_dw, c->out * k, 1e-5);
    compare("dbias", dbias, want_dbias, c->out, 1e-5);
}

static void every_patch(enum gpu_storage storage)
{
    static const struct patch_case cases[] = {
        { 1, 1, 3, { 1, 2, 2 }, { 1, 2, 2 } },
        { 2, 16, 24, { 3, 6, 10 }, { 1, 2, 2 } },
        { 2, 3, 8, { 4, 6, 9 }, { 2, 2, 3 } },
        { 1, 2, 5, { 2, 64, 40 }, { 1, 1, 1 } },
    };
    open_rig(storage);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        run_patches(&cases[i]);
    close_rig();
}

static void patches_become_rows(void)
{
    every_patch(GPU_F32);
    every_patch(GPU_BF16);
}

/* ---- loss ---- */

static void run_square_error(size_t samples, size_t n)
{
    size_t parts = nn_square_error_parts(n);
    float *x = numbers(samples * n), *target = numbers(samples * n), *sums = zeros(samples * parts);
    double *slope = doubles(samples * n), *want = doubles(samples);
    for (size_t i = 0; i < samples * n; i++) {
        double off = (double)x[i] - (double)target[i];
        want[i / n] += off * off;
        slope[i] = 2 * 0.5 * off;
    }
    struct nn_square_error s = {
        .parts = sums,
        .x = stored(x, samples * n),
        .target = target,
        .samples = samples,
        .n = n,
        .scale = 0.5f,
    };
    CHECK(!nn_square_error(&rig.nn, &s, &err));
    s.dx = (void *)s.x; /* in place */
    CHECK(!nn_square_error(&rig.nn, &s, &err));
    for (size_t i = 0; i < samples; i++) {
        double sum = 0;
        for (size_t k = 0; k < parts; k++)
            sum += (double)sums[i * parts + k];
        CHECK(fabs(sum - want[i]) < 1e-5 * want[i]);
    }
    compare_stored("dx", s.dx, slope, samples * n);
}

static void squared_error_has_a_gradient(void)
{
    static const enum gpu_storage storages[] = { GPU_F32, GPU_BF16, GPU_F16 };
    for (size_t i = 0; i < ARRAY_LEN(storages); i++) {
        open_rig(storages[i]);
        run_square_error(1, 5);
        run_square_error(3, 4096);
        run_square_error(2, 9001);
        close_rig();
    }
}

int main(void)
{
    RUN(small_linears_sum_in_f32);
    RUN(modulations_are_made_for_each_set);
    RUN(norms_are_modulated_in_sets);
    RUN(norm_gradients_are_differences);
    RUN(frozen_norms_are_there_and_back);
    RUN(gates_are_there_and_back);
    RUN(streams_may_be_wide);
    RUN(exact_gelu_is_exact);
    RUN(exact_gelu_is_stored);
    RUN(silu_is_there_and_back);
    RUN(patches_become_rows);
    RUN(squared_error_has_a_gradient);
    return check_done();
}
