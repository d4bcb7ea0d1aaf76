/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/quant.h"
#include <math.h>

enum { MOST = 70 * 192 };

static double e4m3_of(uint8_t code)
{
    int exponent = code >> 3 & 15, part = code & 7;
    double size = exponent ? ldexp(8 + part, exponent - 10) : ldexp(part, -9);
    return (code & 0x7f) == 0x7f ? NAN : code & 0x80 ? -size : size;
}

static double e5m2_of(uint8_t code)
{
    int exponent = code >> 2 & 31, part = code & 3;
    double size = exponent == 31 ? (part ? NAN : INFINITY)
                  : exponent     ? ldexp(4 + part, exponent - 17)
                                 : ldexp(part, -16);
    return code & 0x80 ? -size : size;
}

static double int8_of(uint8_t code)
{
    return (int8_t)code;
}

static const struct shape {
    size_t rows, columns, per_row;
} shapes[] = { { 1, 1, 0 }, { 16, 16, 0 }, { 7, 65, 1 }, { 70 * 3, 64, 1 }, { 3, 4001, 1 } };

/* All 256 codes occur if they fit; the values are exact before the last rounding, so they must be
 * equal. */
static void dequantise_shape(struct check *c, const struct shape *s, const char *kernel,
                             double (*decode)(uint8_t))
{
    static uint8_t codes[MOST];
    size_t n = s->rows * s->columns;
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint8_t)(i % 256);
    struct check_tensor scale = check_input_f32(c, s->per_row ? s->rows : 1, 0.01f), y = check_output(c, n);
    struct dequantise_args args = { .y = y.device,
                                    .x = check_bytes(c, codes, n),
                                    .scale = scale.device,
                                    .rows = (k_i64)s->rows,
                                    .columns = (k_i64)s->columns,
                                    .per_row = (k_i64)s->per_row };
    check_allow_odd(c);
    CHECK_LAUNCH(c, kernel, ((struct gpu_grid){ .x = (unsigned)K_ROW_GROUPS(s->rows, s->columns) }), args);
    check_fetch(c, &y);
    for (size_t i = 0; i < n && check_ok(c); i++) {
        float product = (float)((double)scale.host[i / s->columns * s->per_row] * decode(codes[i]));
        float want = check_widen(c, check_narrow(c, product));
        if (isnan(want) ? !isnan(y.host[i]) : y.host[i] != want)
            check_complain(c, "0x%02x becomes %.9g, not %.9g", codes[i], (double)y.host[i], (double)want);
    }
}

static void dequantise(struct check *c, const char *kernel, double (*decode)(uint8_t))
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        dequantise_shape(c, &shapes[i], kernel, decode);
}

static void dequantise_e4m3(struct check *c)
{
    dequantise(c, "dequantise_e4m3", e4m3_of);
}

static void dequantise_e5m2(struct check *c)
{
    dequantise(c, "dequantise_e5m2", e5m2_of);
}

static void dequantise_int8(struct check *c)
{
    dequantise(c, "dequantise_int8", int8_of);
}

static uint8_t int8_code(float v)
{
    return (uint8_t)(int8_t)rintf(v);
}

/* The nearest of all codes; of two, the even one. */
static uint8_t e4m3_code(float v)
{
    uint8_t best = 0;
    for (uint8_t code = 1; code < 0x7f; code++) {
        double off = fabs(fabs((double)v) - e4m3_of(code)), least = fabs(fabs((double)v) - e4m3_of(best));
        if (off < least || (off == least && code % 2 == 0))
            best = code;
    }
    return signbit(v) ? best | 0x80 : best;
}

/* What the host makes of a row: these very bits. */
static void quantise_row(uint8_t *codes, float *scale, const float *x, size_t n, float largest,
                         uint8_t (*encode)(float))
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, isfinite(x[i]) ? fabsf(x[i]) : INFINITY);
    *scale = most / largest;
    for (size_t i = 0; i < n; i++)
        codes[i] =
            *scale > 0 && isfinite(*scale) ? encode(fmaxf(fminf(x[i] / *scale, largest), -largest)) : 0;
}

/* Rows of ordinary numbers and of some whose scale is subnormal, zero, or infinite. */
static struct check_tensor rows_of_all_sizes(struct check *c, const struct shape *s)
{
    static const float factors[] = { 1, 1e-38f, 3e4f, 1e-43f, 0, -1e-6f };
    struct check_tensor x = check_input(c, s->rows * s->columns, 1);
    for (size_t i = 0; i < x.n; i++)
        x.host[i] *= factors[i / s->columns % ARRAY_LEN(factors)];
    if (s->rows > 2) {
        x.host[(s->rows - 1) * s->columns + s->columns / 2] = NAN;
        x.host[(s->rows - 2) * s->columns + s->columns - 1] = -INFINITY;
    }
    return check_values(c, x.n, x.host);
}

static void quantise(struct check *c, const char *kernel, float largest, uint8_t (*encode)(float))
{
    static uint8_t want[MOST];
    static float scales[70 * 3];
    check_allow_odd(c);
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        size_t rows = shapes[k].rows, columns = shapes[k].columns, n = rows * columns;
        struct check_tensor x = rows_of_all_sizes(c, &shapes[k]), y = check_output_f32(c, n / 4 + 1),
                            scale = check_output_f32(c, rows);
        struct quantise_args args = { .y = y.device,
                                      .scale = scale.device,
                                      .x = x.device,
                                      .rows = (k_i64)rows,
                                      .columns = (k_i64)columns };
        for (size_t r = 0; r < rows; r++)
            quantise_row(want + r * columns, &scales[r], x.host + r * columns, columns, largest, encode);
        CHECK_LAUNCH(c, kernel, ((struct gpu_grid){ .x = (unsigned)rows }), args);
        check_equal_bytes(c, scale.device, scales, rows * sizeof(*scales));
        check_equal_bytes(c, y.device, want, n);
    }
}

static void quantise_int8(struct check *c)
{
    quantise(c, "quantise_int8", 127, int8_code);
}

static void quantise_e4m3(struct check *c)
{
    quantise(c, "quantise_e4m3", 448, e4m3_code);
}

const struct check_case checks_quant[] = {
    { "dequantise_e4m3", dequantise_e4m3, false }, { "dequantise_e5m2", dequantise_e5m2, false },
    { "dequantise_int8", dequantise_int8, false }, { "quantise_e4m3", quantise_e4m3, false },
    { "quantise_int8", quantise_int8, false },
};
const size_t n_checks_quant = ARRAY_LEN(checks_quant);
