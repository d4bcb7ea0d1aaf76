/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/reduce.h"
#include "gpu/kernels/square_error.h"
#include <math.h>
#include <stdlib.h>

/* Numbers with every `strange`th one NaN, infinite or 0; 0: none. */
static void stats_of(struct check *c, size_t n, size_t strange)
{
    float *values = calloc(n, sizeof(*values));
    struct k_stats want = { .least = INFINITY, .most = -INFINITY }, got;
    if (!values) {
        check_complain(c, "no memory");
        return;
    }
    static const float odd[] = { NAN, INFINITY, 0, -INFINITY, -0.0f };
    for (size_t i = 0; i < n; i++)
        values[i] =
            strange && i % strange == 0 ? odd[i / strange % ARRAY_LEN(odd)] : (float)(check_random(c) - 0.25);
    struct check_tensor x = check_values(c, n, values);
    free(values);
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        float v = x.host[i];
        want.nan += isnan(v), want.infinite += isinf(v) != 0, want.zero += v == 0;
        if (isfinite(v)) {
            want.least = fminf(want.least, v), want.most = fmaxf(want.most, v);
            sum += v, square += (double)v * v;
        }
    }
    struct check_tensor parts = check_output_f32(c, K_GROUPS(n) * sizeof(got) / sizeof(float)),
                        y = check_output_f32(c, sizeof(got) / sizeof(float));
    struct stats_args args = { .parts = parts.device, .x = x.device, .n = (k_i64)n };
    struct stats_fold_args fold = { .y = y.device, .parts = parts.device, .n = (k_i64)K_GROUPS(n) };
    CHECK_LAUNCH(c, "stats", ((struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }), args);
    CHECK_LAUNCH(c, "stats_fold", ((struct gpu_grid){ .x = 1 }), fold);
    check_read_bytes(c, &got, y.device, sizeof(got));
    if (!check_ok(c))
        return;
    if (got.nan != want.nan || got.infinite != want.infinite || got.zero != want.zero)
        check_complain(c, "of %zu values %lld NaN, %lld Inf, %lld zero; not %lld, %lld, %lld", n, got.nan,
                       got.infinite, got.zero, want.nan, want.infinite, want.zero);
    if (got.least != want.least || got.most != want.most)
        check_complain(c, "between %g and %g, not %g and %g", (double)got.least, (double)got.most,
                       (double)want.least, (double)want.most);
    if (fabs(got.sum - sum) > 1e-6 * fabs(sum) + 1e-12 || fabs(got.square - square) > 1e-6 * square)
        check_complain(c, "sums %.9g and %.9g, not %.9g and %.9g", (double)got.sum, (double)got.square, sum,
                       square);
}

static void stats(struct check *c)
{
    stats_of(c, 1, 0);
    stats_of(c, 1, 1);
    stats_of(c, 5, 1);
    stats_of(c, 4096, 0);
    stats_of(c, 10007, 13);
}

/* Many parts. */
static void stats_fold(struct check *c)
{
    stats_of(c, (size_t)600 * K_SHARE + 1, 1001);
}

static void square_error_of(struct check *c, size_t samples, size_t n, bool gradient)
{
    size_t parts = K_GROUPS(n);
    struct check_tensor x = check_input(c, samples * n, 1), target = check_input_f32(c, samples * n, 1),
                        dx = check_output(c, samples * n), sums = check_output_f32(c, samples * parts);
    struct square_error_args args = {
        .parts = sums.device,
        .dx = gradient ? dx.device : NULL,
        .x = x.device,
        .target = target.device,
        .n = (k_i64)n,
        .factor = 0.25f,
    };
    double *want = check_zeros(c, samples * parts), *slope = check_doubles(c, samples * n);
    for (size_t i = 0; i < samples * n; i++) {
        double off = (double)x.host[i] - target.host[i];
        want[i / n * parts + i % n / K_SHARE] += off * off;
        slope[i] = 0.25 * off;
    }
    CHECK_LAUNCH(c, "square_error", ((struct gpu_grid){ .x = (unsigned)parts, .y = (unsigned)samples }),
                 args);
    check_compare(c, &sums, want, 32);
    if (gradient)
        check_compare(c, &dx, slope, 2);
}

static void square_error(struct check *c)
{
    square_error_of(c, 1, 1, true);
    square_error_of(c, 3, 7, true);
    square_error_of(c, 2, 4096, true);
    square_error_of(c, 3, 10007, true);
    square_error_of(c, 2, 4099, false);
}

const struct check_case checks_reduce[] = {
    { "stats", stats, false },
    { "stats_fold", stats_fold, true },
    { "square_error", square_error, false },
};
const size_t n_checks_reduce = ARRAY_LEN(checks_reduce);
