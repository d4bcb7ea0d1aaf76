/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/norm.h"
#include <math.h>

static const struct shape {
    size_t rows, columns, rows_per_w;
} shapes[] = { { 3, 1, 0 }, { 5, 7, 0 }, { 4, 256, 0 }, { 6, 1000, 3 }, { 4, 1536, 2 }, { 2, 5121, 0 } };

static void row_moments(const float *x, size_t n, bool centre, double epsilon, double *mean, double *rstd)
{
    double sum = 0, square = 0;
    for (size_t i = 0; i < n && centre; i++)
        sum += x[i];
    *mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (x[i] - *mean) * (x[i] - *mean);
    *rstd = 1 / sqrt(square / (double)n + epsilon);
}

static void norm_shape(struct check *c, const struct shape *s, const char *kernel, bool centre)
{
    size_t n = s->rows * s->columns, sets = s->rows_per_w ? s->rows / s->rows_per_w : 1;
    struct check_tensor x = check_input(c, n, 2), w = check_input_f32(c, sets * s->columns, 1),
                        b = check_input_f32(c, sets * s->columns, 1), y = check_output(c, n),
                        mean = check_output_f32(c, s->rows), rstd = check_output_f32(c, s->rows);
    struct norm_args args = {
        .y = y.device,
        .mean = mean.device,
        .rstd = rstd.device,
        .x = x.device,
        .w = w.device,
        .b = b.device,
        .rows = (k_i64)s->rows,
        .columns = (k_i64)s->columns,
        .rows_per_w = (k_i64)s->rows_per_w,
        .epsilon = 1e-5f,
        .w_plus = s->rows_per_w ? 1 : 0,
    };
    CHECK_LAUNCH(c, kernel, ((struct gpu_grid){ .x = (unsigned)s->rows }), args);
    double *want = check_doubles(c, n), *means = check_doubles(c, s->rows),
           *rstds = check_doubles(c, s->rows);
    for (size_t r = 0; r < s->rows; r++) {
        row_moments(x.host + r * s->columns, s->columns, centre, args.epsilon, &means[r], &rstds[r]);
        size_t set = s->rows_per_w ? r / s->rows_per_w * s->columns : 0;
        for (size_t i = 0; i < s->columns; i++)
            want[r * s->columns + i] =
                (x.host[r * s->columns + i] - means[r]) * rstds[r] * ((double)w.host[set + i] + args.w_plus) +
                b.host[set + i];
    }
    check_compare(c, &y, want, 4);
    check_compare(c, &rstd, rstds, 8);
    if (centre)
        check_compare(c, &mean, means, 64);
}

static void layer_norm(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        norm_shape(c, &shapes[i], "layer_norm", true);
}

static void rms_norm(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        norm_shape(c, &shapes[i], "rms_norm", false);
}

const struct check_case checks_norm[] = {
    { "layer_norm", layer_norm, false },
    { "rms_norm", rms_norm, false },
};
const size_t n_checks_norm = ARRAY_LEN(checks_norm);
