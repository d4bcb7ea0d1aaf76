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

static void quantise_int8(struct check *c)
{
    static int8_t got[MOST];
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        size_t rows = shapes[k].rows, columns = shapes[k].columns, n = rows * columns;
        struct check_tensor x = check_input(c, n, 1), y = check_output_f32(c, n / 4 + 1),
                            scale = check_output_f32(c, rows);
        struct quantise_args args = { .y = y.device,
                                      .scale = scale.device,
                                      .x = x.device,
                                      .rows = (k_i64)rows,
                                      .columns = (k_i64)columns };
        CHECK_LAUNCH(c, "quantise_int8", ((struct gpu_grid){ .x = (unsigned)rows }), args);
        double *want = check_doubles(c, rows);
        check_read_bytes(c, got, y.device, n);
        for (size_t r = 0; r < rows; r++) {
            double most = 0;
            for (size_t i = r * columns; i < (r + 1) * columns; i++)
                most = fmax(most, fabs(x.host[i]));
            want[r] = most / 127;
            for (size_t i = r * columns; i < (r + 1) * columns && check_ok(c); i++) {
                double exact = x.host[i] / want[r]; /* f32 may see a tie where there is nearly one */
                if (fabs(got[i] - exact) > 0.5001)
                    check_complain(c, "element %zu, %.4f of the row's scale, becomes %d", i, exact, got[i]);
            }
        }
        check_compare(c, &scale, want, 1);
    }
}

const struct check_case checks_quant[] = {
    { "dequantise_e4m3", dequantise_e4m3, false },
    { "dequantise_e5m2", dequantise_e5m2, false },
    { "dequantise_int8", dequantise_int8, false },
    { "quantise_int8", quantise_int8, false },
};
const size_t n_checks_quant = ARRAY_LEN(checks_quant);
