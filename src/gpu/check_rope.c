/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/rope.h"
#include "gpu/rope.h"
#include <math.h>
#include <stdlib.h>

/* frames, height, width: 0 for one axis of `tokens`.  beside: numbers after the heads of a token that
 * stay. */
static const struct shape {
    size_t batch, tokens, heads, columns, pairs, frames, height, width, beside;
} shapes[] = {
    { 1, 1, 1, 2, 1, 0, 0, 0, 0 },    { 2, 5, 3, 10, 3, 0, 0, 0, 0 },    { 1, 70, 2, 64, 32, 0, 0, 0, 32 },
    { 2, 12, 2, 32, 16, 2, 3, 2, 0 }, { 1, 30, 3, 128, 64, 1, 6, 5, 0 }, { 1, 3, 1, 1040, 520, 0, 0, 0, 0 },
    { 2, 5, 3, 10, 3, 0, 0, 0, 7 },
};

static double angle_of(const struct shape *s, size_t token, size_t pair)
{
    if (!s->frames)
        return (double)token * pow(10000, -(double)pair / (double)s->pairs);
    size_t third = s->pairs / 3, rest = s->pairs - 2 * third;
    size_t y = token / s->width % s->height, x = token % s->width, f = token / (s->height * s->width);
    if (pair < rest)
        return (double)f * pow(10000, -(double)pair / (double)rest);
    if (pair < rest + third)
        return (double)y * pow(10000, -(double)(pair - rest) / (double)third);
    return (double)x * pow(10000, -(double)(pair - rest - third) / (double)third);
}

static void turn_row(const struct shape *s, size_t token, bool halves, const float *x, double *y)
{
    for (size_t i = 0; i < s->columns; i++)
        y[i] = x[i];
    for (size_t p = 0; p < s->pairs; p++) {
        size_t first = halves ? p : 2 * p, second = halves ? p + s->pairs : 2 * p + 1;
        double angle = angle_of(s, token, p);
        y[first] = x[first] * cos(angle) - x[second] * sin(angle);
        y[second] = x[first] * sin(angle) + x[second] * cos(angle);
    }
}

static void upload_tables(struct check *c, const struct shape *s, struct rope_args *args)
{
    size_t n = s->tokens * s->pairs;
    float *tables = malloc(2 * n * sizeof(*tables));
    if (!tables) {
        check_complain(c, "no memory");
        return;
    }
    if (s->frames)
        rope_table_grid(s->frames, s->height, s->width, s->pairs, tables, tables + n);
    else
        rope_table(0, s->tokens, s->pairs, 10000, tables, tables + n);
    args->cos_ = check_bytes(c, tables, n * sizeof(*tables));
    args->sin_ = check_bytes(c, tables + n, n * sizeof(*tables));
    free(tables);
}

/* There, and back again in place. */
static void rope_shape(struct check *c, const struct shape *s, const char *kernel, bool halves)
{
    size_t rows = s->batch * s->tokens * s->heads, stride = s->heads * s->columns + s->beside;
    size_t n = s->batch * s->tokens * stride;
    struct check_tensor x = check_input(c, n, 1), y = check_input(c, n, 1);
    struct rope_args args = { .y = y.device,
                              .x = x.device,
                              .rows = (k_i64)rows,
                              .columns = (k_i64)s->columns,
                              .pairs = (k_i64)s->pairs,
                              .rows_per_position = (k_i64)s->heads,
                              .stride = (k_i64)stride,
                              .positions = (k_i64)s->tokens };
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(rows, s->pairs) };
    upload_tables(c, s, &args);
    CHECK_LAUNCH(c, kernel, grid, args);
    double *want = check_doubles(c, n);
    for (size_t i = 0; i < n; i++)
        want[i] = y.host[i];
    for (size_t r = 0; r < rows; r++) {
        size_t at = r / s->heads * stride + r % s->heads * s->columns;
        turn_row(s, r / s->heads % s->tokens, halves, x.host + at, want + at);
    }
    check_compare(c, &y, want, 2);
    args.x = y.device, args.back = 1;
    CHECK_LAUNCH(c, kernel, grid, args);
    for (size_t i = 0; i < n; i++)
        want[i] = i % stride < s->heads * s->columns ? x.host[i] : want[i];
    check_compare(c, &y, want, 6);
}

static void rope_halves(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        rope_shape(c, &shapes[i], "rope_halves", true);
}

static void rope_pairs(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        rope_shape(c, &shapes[i], "rope_pairs", false);
}

const struct check_case checks_rope[] = {
    { "rope_halves", rope_halves, false },
    { "rope_pairs", rope_pairs, false },
};
const size_t n_checks_rope = ARRAY_LEN(checks_rope);
