/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/elementwise.h"
#include <math.h>
#include <string.h>

static const size_t sizes[] = { 1, 7, 256, 4096, 10007 };

static struct gpu_grid groups(size_t n)
{
    return (struct gpu_grid){ .x = (unsigned)K_GROUPS(n) };
}

static void fill(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        struct check_tensor y = check_output(c, sizes[s]);
        struct fill_args args = { .y = y.device, .n = (k_i64)y.n, .value = -1.75f };
        CHECK_LAUNCH(c, "fill", groups(y.n), args);
        double *want = check_doubles(c, y.n);
        for (size_t i = 0; i < y.n; i++)
            want[i] = -1.75;
        check_compare(c, &y, want, 0.001);
    }
}

/* ---- formats: every value of 16 bits ---- */

enum { CODES = 65536 };

static bool is_nan_code(enum gpu_storage s, uint16_t code)
{
    return (code & 0x7fff) > (s == GPU_F16 ? 0x7c00 : 0x7f80);
}

/* All codes of the format; for f32 the codes are the upper halves. */
static void all_codes(const struct check *c, void *out)
{
    for (uint32_t i = 0; i < CODES; i++)
        if (check_storage(c) == GPU_F32)
            ((uint32_t *)out)[i] = i << 16 | i;
        else
            ((uint16_t *)out)[i] = (uint16_t)i;
}

static size_t code_size(const struct check *c)
{
    return check_storage(c) == GPU_F32 ? 4 : 2;
}

static void copy(struct check *c)
{
    static uint32_t codes[CODES];
    all_codes(c, codes);
    size_t size = code_size(c);
    const void *x = check_bytes(c, codes, CODES * size);
    /* From every place in a vector: aligned and not. */
    for (size_t from = 0; from < 9; from++) {
        size_t n = CODES - from - 3;
        struct check_tensor y = check_output(c, n + 1);
        struct map_args args = { .y = y.device, .x = (const char *)x + from * size, .n = (k_i64)n };
        CHECK_LAUNCH(c, "copy", groups(n), args);
        check_equal_bytes(c, y.device, (char *)codes + from * size, n * size);
        check_fetch(c, &y);
        if (check_ok(c) && !isnan(y.host[n]))
            check_complain(c, "element %zu, past the end, was written", n);
    }
}

static void widen(struct check *c)
{
    static uint32_t codes[CODES];
    all_codes(c, codes);
    struct check_tensor y = check_output_f32(c, CODES);
    struct widen_args args = { .y = y.device, .x = check_bytes(c, codes, CODES * code_size(c)), .n = CODES };
    check_allow_odd(c);
    CHECK_LAUNCH(c, "widen", groups(CODES), args);
    check_fetch(c, &y);
    for (uint32_t i = 0; i < CODES && check_ok(c); i++) {
        float want = check_widen(c, check_storage(c) == GPU_F32 ? codes[i] : i);
        if (isnan(want) ? !isnan(y.host[i]) : memcmp(&want, &y.host[i], sizeof(want)) != 0)
            check_complain(c, "0x%04x becomes %.9g, not %.9g", i, (double)y.host[i], (double)want);
    }
}

/* Every value of the format, the numbers half way between two of them, and their neighbours. */
static void narrow(struct check *c)
{
    if (check_storage(c) == GPU_F32)
        return;
    enum { AROUND = 6, N = CODES * AROUND };
    static float x[N];
    static uint16_t got[N];
    for (uint32_t i = 0; i < CODES; i++) {
        float here = check_widen(c, i), next = check_widen(c, (i + 1) & 0xffff), half = (here + next) / 2;
        float around[AROUND] = { here,          half,       nextafterf(half, here), nextafterf(half, next),
                                 here * 1.001f, here * 1e9f };
        memcpy(x + (size_t)i * AROUND, around, sizeof(around));
    }
    struct check_tensor y = check_output(c, N);
    struct narrow_args args = { .y = y.device, .x = check_bytes(c, x, sizeof(x)), .n = N };
    check_allow_odd(c);
    CHECK_LAUNCH(c, "narrow", groups(N), args);
    check_read_bytes(c, got, y.device, sizeof(got));
    for (size_t i = 0; i < N && check_ok(c); i++) {
        uint16_t want = (uint16_t)check_narrow(c, x[i]);
        if (isnan(x[i]) ? !is_nan_code(check_storage(c), got[i]) : got[i] != want)
            check_complain(c, "%.9g becomes 0x%04x, not 0x%04x", (double)x[i], got[i], want);
    }
}

/* A power of two changes no bits of the numbers. */
static void widen_scaled(struct check *c)
{
    const float factor = 16;
    struct check_tensor x = check_input(c, 1001, 1), y = check_output_f32(c, 1001);
    struct widen_scaled_args args = { .y = y.device, .x = x.device, .n = 1001, .factor = factor };
    CHECK_LAUNCH(c, "widen_scaled", groups(x.n), args);
    check_fetch(c, &y);
    for (size_t i = 0; i < x.n && check_ok(c); i++)
        if (y.host[i] != x.host[i] * factor)
            check_complain(c, "%.9g becomes %.9g", (double)x.host[i], (double)y.host[i]);
}

/* Also what is too large without the factor. */
static void narrow_scaled(struct check *c)
{
    const float factor = 1.0f / 16;
    struct check_tensor x = check_input_f32(c, 1001, 1e5f), y = check_output(c, 1001);
    struct narrow_scaled_args args = { .y = y.device, .x = x.device, .n = 1001, .factor = factor };
    CHECK_LAUNCH(c, "narrow_scaled", groups(x.n), args);
    check_fetch(c, &y);
    for (size_t i = 0; i < x.n && check_ok(c); i++)
        if (y.host[i] != check_widen(c, check_narrow(c, x.host[i] * factor)))
            check_complain(c, "%.9g becomes %.9g", (double)x.host[i], (double)y.host[i]);
}

/* ---- y = f(x, z) ---- */

typedef double combine_fn(double x, double z);

static double sum_of(double x, double z)
{
    return x + z;
}

static double product_of(double x, double z)
{
    return x * z;
}

static double add_scaled_of(double x, double z)
{
    return x - 0.375 * z;
}

static double scale_of(double x, double z)
{
    (void)z;
    return -0.375 * x;
}

static void combine(struct check *c, const char *kernel, combine_fn *f)
{
    const float by = -3;
    const void *by_device = check_bytes(c, &by, sizeof(by));
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        size_t n = sizes[s];
        struct check_tensor x = check_input(c, n, 1), z = check_input(c, n, 1), y = check_output(c, n);
        struct combine_args args = {
            .y = y.device, .x = x.device, .z = z.device, .n = (k_i64)n, .factor = 0.125f, .by = by_device
        };
        CHECK_LAUNCH(c, kernel, groups(n), args);
        double *want = check_doubles(c, n);
        for (size_t i = 0; i < n; i++)
            want[i] = f(x.host[i], z.host[i]);
        check_compare(c, &y, want, 1);
        args.y = (void *)args.x; /* in place */
        CHECK_LAUNCH(c, kernel, groups(n), args);
        check_compare(c, &x, want, 1);
    }
}

static void add(struct check *c)
{
    combine(c, "add", sum_of);
}

static void mul(struct check *c)
{
    combine(c, "mul", product_of);
}

static void add_scaled(struct check *c)
{
    combine(c, "add_scaled", add_scaled_of);
}

static void scale(struct check *c)
{
    combine(c, "scale", scale_of);
}

/* ---- activations ---- */

static double gelu_of(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_erf_of(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2));
}

static double gelu_slope_of(double x)
{
    double k = sqrt(2 / M_PI), t = tanh(k * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x);
}

static double silu_of(double x)
{
    return x / (1 + exp(-x));
}

static double silu_slope_of(double x)
{
    double s = 1 / (1 + exp(-x));
    return s + x * s * (1 - s);
}

static void map(struct check *c, const char *kernel, double (*f)(double))
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        size_t n = sizes[s];
        struct check_tensor x = check_input(c, n, 4), y = check_output(c, n);
        struct map_args args = { .y = y.device, .x = x.device, .n = (k_i64)n };
        CHECK_LAUNCH(c, kernel, groups(n), args);
        double *want = check_doubles(c, n);
        for (size_t i = 0; i < n; i++)
            want[i] = f(x.host[i]);
        check_compare(c, &y, want, 4);
    }
}

static void map_backward(struct check *c, const char *kernel, double (*slope)(double))
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        size_t n = sizes[s];
        struct check_tensor x = check_input(c, n, 4), dy = check_input(c, n, 1), dx = check_output(c, n);
        struct map_backward_args args = { .dx = dx.device, .dy = dy.device, .x = x.device, .n = (k_i64)n };
        CHECK_LAUNCH(c, kernel, groups(n), args);
        double *want = check_doubles(c, n);
        for (size_t i = 0; i < n; i++)
            want[i] = dy.host[i] * slope(x.host[i]);
        check_compare(c, &dx, want, 8);
    }
}

static void gelu(struct check *c)
{
    map(c, "gelu", gelu_of);
}

static void gelu_erf(struct check *c)
{
    map(c, "gelu_erf", gelu_erf_of);
}

static void silu(struct check *c)
{
    map(c, "silu", silu_of);
}

static void gelu_backward(struct check *c)
{
    map_backward(c, "gelu_backward", gelu_slope_of);
}

static void silu_backward(struct check *c)
{
    map_backward(c, "silu_backward", silu_slope_of);
}

static void swiglu(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        size_t n = sizes[s];
        struct check_tensor gate = check_input(c, n, 3), up = check_input(c, n, 1), y = check_output(c, n);
        struct swiglu_args args = { .y = y.device, .gate = gate.device, .up = up.device, .n = (k_i64)n };
        CHECK_LAUNCH(c, "swiglu", groups(n), args);
        double *want = check_doubles(c, n);
        for (size_t i = 0; i < n; i++)
            want[i] = silu_of(gate.host[i]) * up.host[i];
        check_compare(c, &y, want, 4);
    }
}

static void geglu(struct check *c)
{
    static const size_t shapes[][2] = { { 1, 1 }, { 3, 7 }, { 5, 80 }, { 2, 10240 }, { 33, 257 } };
    for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
        size_t rows = shapes[s][0], columns = shapes[s][1], n = rows * columns;
        struct check_tensor x = check_input(c, 2 * n, 3), y = check_output(c, n);
        struct geglu_args args = {
            .y = y.device, .x = x.device, .rows = (k_i64)rows, .columns = (k_i64)columns, .factor = 0.125f
        };
        CHECK_LAUNCH(c, "geglu", ((struct gpu_grid){ .x = (unsigned)K_ROW_GROUPS(rows, columns) }), args);
        double *want = check_doubles(c, n);
        for (size_t i = 0; i < n; i++) {
            const float *gate = x.host + i / columns * 2 * columns + i % columns;
            want[i] = gelu_of(gate[0]) * gate[columns] * 0.125;
        }
        check_compare(c, &y, want, 8);
    }
}

static void swiglu_backward(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        size_t n = sizes[s];
        struct check_tensor gate = check_input(c, n, 3), up = check_input(c, n, 1), dy = check_input(c, n, 1),
                            dgate = check_output(c, n), dup = check_output(c, n);
        struct swiglu_backward_args args = { .dgate = dgate.device,
                                             .dup = dup.device,
                                             .dy = dy.device,
                                             .gate = gate.device,
                                             .up = up.device,
                                             .n = (k_i64)n };
        CHECK_LAUNCH(c, "swiglu_backward", groups(n), args);
        double *want_gate = check_doubles(c, n), *want_up = check_doubles(c, n);
        for (size_t i = 0; i < n; i++) {
            want_gate[i] = (double)dy.host[i] * up.host[i] * silu_slope_of(gate.host[i]);
            want_up[i] = dy.host[i] * silu_of(gate.host[i]);
        }
        check_compare(c, &dgate, want_gate, 8);
        check_compare(c, &dup, want_up, 8);
    }
}

const struct check_case checks_elementwise[] = {
    { "fill", fill, false },
    { "copy", copy, false },
    { "widen", widen, false },
    { "narrow", narrow, false },
    { "widen_scaled", widen_scaled, false },
    { "narrow_scaled", narrow_scaled, false },
    { "add", add, false },
    { "mul", mul, false },
    { "scale", scale, false },
    { "add_scaled", add_scaled, false },
    { "gelu", gelu, false },
    { "gelu_backward", gelu_backward, false },
    { "gelu_erf", gelu_erf, false },
    { "silu", silu, false },
    { "silu_backward", silu_backward, false },
    { "swiglu", swiglu, false },
    { "swiglu_backward", swiglu_backward, false },
    { "geglu", geglu, false },
};
const size_t n_checks_elementwise = ARRAY_LEN(checks_elementwise);
