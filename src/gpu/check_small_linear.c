/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/small_linear.h"
#include <math.h>

static const struct shape {
    size_t rows, in, out;
    bool silu, no_bias;
} shapes[] = {
    { 1, 1, 1, false, false },    { 1, 256, 64, false, true },   { 2, 40, 33, true, false },
    { 8, 520, 100, true, false }, { 9, 1030, 67, false, false }, { 64, 96, 40, true, true },
};

static void run_shape(struct check *c, const struct shape *s)
{
    struct check_tensor x = check_input_f32(c, s->rows * s->in, 1), w = check_input(c, s->out * s->in, 1),
                        bias = check_input_f32(c, s->out, 1), y = check_output_f32(c, s->rows * s->out);
    struct small_linear_args args = {
        .y = y.device,
        .x = x.device,
        .w = w.device,
        .bias = s->no_bias ? NULL : bias.device,
        .rows = (k_i64)s->rows,
        .in = (k_i64)s->in,
        .out = (k_i64)s->out,
        .silu = s->silu,
    };
    struct gpu_grid grid = { .x = (unsigned)SMALL_LINEAR_GROUPS(s->out, SMALL_LINEAR_COLUMNS),
                             .y = (unsigned)SMALL_LINEAR_GROUPS(s->rows, SMALL_LINEAR_ROWS) };
    CHECK_LAUNCH(c, "small_linear", grid, args);
    double *want = check_doubles(c, y.n);
    for (size_t i = 0; i < y.n; i++) {
        size_t row = i / s->out, column = i % s->out;
        want[i] = s->no_bias ? 0 : bias.host[column];
        for (size_t k = 0; k < s->in; k++) {
            double v = x.host[row * s->in + k];
            want[i] += (s->silu ? v / (1 + exp(-v)) : v) * w.host[column * s->in + k];
        }
    }
    check_compare(c, &y, want, 16);
}

static void small_linear(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        run_shape(c, &shapes[i]);
}

const struct check_case checks_small_linear[] = { { "small_linear", small_linear, false } };
const size_t n_checks_small_linear = ARRAY_LEN(checks_small_linear);
