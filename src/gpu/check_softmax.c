/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/cross_entropy.h"
#include "gpu/kernels/softmax.h"
#include <math.h>

/* Softmax of scale x over the first n of `columns`; returns the logarithm of the sum. */
static double softmax_of(const float *x, size_t n, size_t columns, double scale, double *y)
{
    double max = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        max = fmax(max, scale * x[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp(scale * x[i] - max);
    for (size_t i = 0; i < columns; i++)
        y[i] = i < n ? exp(scale * x[i] - max) / sum : 0;
    return max + log(sum);
}

static const struct shape {
    size_t rows, columns, rows_per_matrix; /* 0: not causal */
    float scale;
} shapes[] = {
    { 3, 1, 0, 1 },    { 5, 7, 0, 0.5f }, { 8, 300, 4, 0.125f },
    { 6, 2048, 0, 3 }, { 6, 3, 3, 1 },    { 2, 5001, 2, 1 },
};

static void softmax(struct check *c)
{
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        const struct shape *s = &shapes[k];
        size_t n = s->rows * s->columns;
        struct check_tensor x = check_input(c, n, 4), y = check_output(c, n);
        struct softmax_args args = { .y = y.device,
                                     .x = x.device,
                                     .rows = (k_i64)s->rows,
                                     .columns = (k_i64)s->columns,
                                     .rows_per_matrix = (k_i64)s->rows_per_matrix,
                                     .scale = s->scale,
                                     .causal = s->rows_per_matrix > 0 };
        CHECK_LAUNCH(c, "softmax", ((struct gpu_grid){ .x = (unsigned)K_WHOLE_GROUPS(s->rows, s->columns) }),
                     args);
        double *want = check_doubles(c, n);
        for (size_t r = 0; r < s->rows; r++) {
            size_t m = s->rows_per_matrix, seen = m ? r % m + 1 + s->columns - m : s->columns;
            softmax_of(x.host + r * s->columns, seen, s->columns, s->scale, want + r * s->columns);
        }
        check_compare(c, &y, want, 16);
    }
}

static void softmax_backward(struct check *c)
{
    for (size_t k = 1; k < ARRAY_LEN(shapes); k++) {
        const struct shape *s = &shapes[k];
        size_t n = s->rows * s->columns;
        struct check_tensor x = check_input(c, n, 2), dy = check_input(c, n, 1), dx = check_output(c, n);
        double *p = check_doubles(c, n), *want = check_doubles(c, n);
        for (size_t r = 0; r < s->rows; r++)
            softmax_of(x.host + r * s->columns, s->columns, s->columns, 1, p + r * s->columns);
        for (size_t i = 0; i < n; i++)
            x.host[i] = (float)p[i];
        struct check_tensor y = check_values(c, n, x.host);
        struct softmax_backward_args args = { .dx = dx.device,
                                              .dy = dy.device,
                                              .y = y.device,
                                              .rows = (k_i64)s->rows,
                                              .columns = (k_i64)s->columns,
                                              .scale = s->scale };
        CHECK_LAUNCH(c, "softmax_backward",
                     ((struct gpu_grid){ .x = (unsigned)K_WHOLE_GROUPS(s->rows, s->columns) }), args);
        for (size_t r = 0; r < s->rows; r++) {
            double dot = 0;
            for (size_t i = r * s->columns; i < (r + 1) * s->columns; i++)
                dot += (double)y.host[i] * dy.host[i];
            for (size_t i = r * s->columns; i < (r + 1) * s->columns; i++)
                want[i] = s->scale * (double)y.host[i] * (dy.host[i] - dot);
        }
        check_compare(c, &dx, want, 16);
    }
}

struct loss_shape {
    size_t rows, columns, stride;
    float smoothing;
};

enum { IGNORED = -100, MOST_ROWS = 9 };

static void loss_shape(struct check *c, const struct loss_shape *s)
{
    size_t n = s->rows * s->stride;
    int targets[MOST_ROWS];
    for (size_t r = 0; r < s->rows; r++)
        targets[r] = r == 1 ? IGNORED : (int)(check_random(c) * (double)s->columns);
    struct check_tensor x = check_input(c, n, 5), loss = check_output_f32(c, s->rows);
    struct cross_entropy_args args = { .loss = loss.device,
                                       .logits = x.device,
                                       .dlogits = x.device,
                                       .targets = check_bytes(c, targets, s->rows * sizeof(int)),
                                       .rows = (k_i64)s->rows,
                                       .columns = (k_i64)s->columns,
                                       .stride = (k_i64)s->stride,
                                       .smoothing = s->smoothing,
                                       .scale = 0.25f,
                                       .ignore = IGNORED };
    double *want = check_doubles(c, s->rows), *grad = check_doubles(c, n);
    for (size_t r = 0; r < s->rows; r++) {
        double *g = grad + r * s->stride;
        const float *logits = x.host + r * s->stride;
        double log_sum = softmax_of(logits, s->columns, s->stride, 1, g);
        bool ignored = targets[r] == IGNORED;
        want[r] = 0;
        for (size_t i = 0; i < s->columns; i++) {
            double q =
                ((int)i == targets[r] ? 1 - s->smoothing : 0) + (double)s->smoothing / (double)s->columns;
            want[r] += ignored ? 0 : q * (log_sum - logits[i]);
            g[i] = ignored ? 0 : (g[i] - q) * 0.25;
        }
    }
    CHECK_LAUNCH(c, "cross_entropy", ((struct gpu_grid){ .x = (unsigned)s->rows }), args);
    check_compare(c, &loss, want, 16);
    check_compare(c, &x, grad, 16);
}

static void cross_entropy(struct check *c)
{
    static const struct loss_shape losses[] = {
        { 4, 2, 2, 0 },         { 9, 10, 16, 0.1f },       { 5, 1000, 1000, 0 },
        { 3, 50257, 50304, 0 }, { 2, 50257, 50257, 0.1f },
    };
    for (size_t i = 0; i < ARRAY_LEN(losses); i++)
        loss_shape(c, &losses[i]);
}

const struct check_case checks_softmax[] = {
    { "softmax", softmax, false },
    { "softmax_backward", softmax_backward, false },
    { "cross_entropy", cross_entropy, false },
};
const size_t n_checks_softmax = ARRAY_LEN(checks_softmax);
