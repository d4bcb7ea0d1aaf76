/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/columns.h"
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

/* A wide norm has x, and dx, in f32, and a group for each row. */
static struct check_tensor make_x(struct check *c, size_t n, bool wide)
{
    return wide ? check_input_f32(c, n, 2) : check_input(c, n, 2);
}

static void norm_shape(struct check *c, const struct shape *s, const char *kernel, bool centre, bool wide)
{
    size_t n = s->rows * s->columns, sets = s->rows_per_w ? s->rows / s->rows_per_w : 1;
    struct check_tensor x = make_x(c, n, wide), w = check_input_f32(c, sets * s->columns, 1),
                        b = check_input_f32(c, sets * s->columns, 1), y = check_output(c, n),
                        mean = check_output_f32(c, s->rows), rstd = check_output_f32(c, s->rows);
    struct norm_args args = {
        .y = y.device,
        .mean = centre ? mean.device : NULL,
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
    struct gpu_grid grid = { .x = (unsigned)(wide ? s->rows : K_NORM_GROUPS(s->rows, s->columns)) };
    CHECK_LAUNCH(c, kernel, grid, args);
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

/* Forward, a group takes rows in turn: more than it has side by side.  The second is more than the host keeps
 * in its cache, in rows of which not all begin at a whole line. */
static const struct shape turns[] = { { 5, 4096, 0 }, { 4099, 1030, 0 } };

static void norm_shapes(struct check *c, const char *kernel, bool centre)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        norm_shape(c, &shapes[i], kernel, centre, false);
    for (size_t i = 0; i < ARRAY_LEN(turns); i++)
        norm_shape(c, &turns[i], kernel, centre, false);
}

static void layer_norm(struct check *c)
{
    norm_shapes(c, "layer_norm", true);
}

static void rms_norm(struct check *c)
{
    norm_shapes(c, "rms_norm", false);
}

static void norm_wide(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        norm_shape(c, &shapes[i], "norm_wide", true, true);
        norm_shape(c, &shapes[i], "norm_wide", false, true);
    }
}

/* ---- backward ---- */

struct gradients {
    double *dx, *dw, *db; /* dw, db: one vector for each set */
};

/* By the chain rule from y = xhat (w + w_plus) + b, where xhat depends on x through the row's moments too. */
static void norm_gradients(const struct shape *s, const struct norm_backward_args *a, bool centre,
                           const float *x, const float *dy, const float *w, struct gradients *out)
{
    size_t n = s->columns;
    for (size_t r = 0; r < s->rows; r++, x += n, dy += n, out->dx += n) {
        size_t set = s->rows_per_w ? r / s->rows_per_w * n : 0;
        double mean, rstd, g_mean = 0, dot_mean = 0;
        row_moments(x, n, centre, 1e-5f, &mean, &rstd);
        for (size_t i = 0; i < n; i++) {
            double xhat = (x[i] - mean) * rstd, g = dy[i] * ((double)w[set + i] + a->w_plus);
            g_mean += centre ? g / (double)n : 0;
            dot_mean += g * xhat / (double)n;
            out->dw[set + i] += dy[i] * xhat;
            out->db[set + i] += dy[i];
        }
        for (size_t i = 0; i < n; i++)
            out->dx[i] =
                rstd * (dy[i] * ((double)w[set + i] + a->w_plus) - g_mean - (x[i] - mean) * rstd * dot_mean);
    }
}

static void check_weights(struct check *c, const struct shape *s, const struct norm_backward_args *a,
                          const double *dw, const double *db)
{
    size_t per_set = s->rows_per_w ? s->rows_per_w : s->rows, sets = s->rows / per_set,
           parts = K_PARTS(per_set, 2);
    unsigned tiles = (unsigned)K_TILES(s->columns), folds = (unsigned)K_FOLDS(s->columns);
    struct check_tensor part_w = check_output_f32(c, sets * parts * s->columns),
                        part_b = check_output_f32(c, sets * parts * s->columns),
                        w = check_output_f32(c, sets * s->columns),
                        b = check_output_f32(c, sets * s->columns);
    struct norm_weights_args args = { .dw = part_w.device,
                                      .db = part_b.device,
                                      .dy = a->dy,
                                      .x = a->x,
                                      .mean = a->mean,
                                      .rstd = a->rstd,
                                      .rows = a->rows,
                                      .columns = a->columns,
                                      .rows_per_w = a->rows_per_w,
                                      .rows_per_part = 2 };
    CHECK_LAUNCH(c, "norm_backward_w", ((struct gpu_grid){ .x = (unsigned)(sets * parts), .y = tiles }),
                 args);
    struct fold_args fold = {
        .y = w.device, .sums = part_w.device, .parts = (k_i64)parts, .columns = a->columns
    };
    CHECK_LAUNCH(c, "fold", ((struct gpu_grid){ .x = (unsigned)sets, .y = folds }), fold);
    fold.y = b.device, fold.sums = part_b.device;
    CHECK_LAUNCH(c, "fold", ((struct gpu_grid){ .x = (unsigned)sets, .y = folds }), fold);
    check_compare(c, &w, dw, 32);
    check_compare(c, &b, db, 16);
}

enum what { DX, DX_WIDE, WEIGHTS };

static void backward_shape(struct check *c, const struct shape *s, bool centre, enum what what)
{
    size_t n = s->rows * s->columns, sets = s->rows_per_w ? s->rows / s->rows_per_w : 1;
    bool wide = what == DX_WIDE;
    struct check_tensor x = make_x(c, n, wide), dy = check_input(c, n, 1),
                        w = check_input_f32(c, sets * s->columns, 1), y = check_output(c, n),
                        dx = wide ? check_output_f32(c, n) : check_output(c, n),
                        mean = check_output_f32(c, s->rows), rstd = check_output_f32(c, s->rows);
    const char *kernel = wide ? "norm_wide_backward" : centre ? "layer_norm_backward" : "rms_norm_backward";
    struct gpu_grid rows = { .x = (unsigned)(wide ? s->rows : K_WHOLE_GROUPS(s->rows, s->columns)) };
    struct norm_args forward = { .y = y.device,
                                 .mean = centre ? mean.device : NULL,
                                 .rstd = rstd.device,
                                 .x = x.device,
                                 .rows = (k_i64)s->rows,
                                 .columns = (k_i64)s->columns,
                                 .epsilon = 1e-5f };
    CHECK_LAUNCH(c, wide ? "norm_wide" : centre ? "layer_norm" : "rms_norm", rows, forward);
    struct norm_backward_args args = { .dx = dx.device,
                                       .dy = dy.device,
                                       .x = x.device,
                                       .w = w.device,
                                       .mean = centre ? mean.device : NULL,
                                       .rstd = rstd.device,
                                       .rows = (k_i64)s->rows,
                                       .columns = (k_i64)s->columns,
                                       .rows_per_w = (k_i64)s->rows_per_w,
                                       .w_plus = s->rows_per_w ? 1 : 0 };
    struct gradients want = { check_doubles(c, n), check_zeros(c, w.n), check_zeros(c, w.n) };
    norm_gradients(s, &args, centre, x.host, dy.host, w.host,
                   &(struct gradients){ want.dx, want.dw, want.db });
    if (what == WEIGHTS) {
        check_weights(c, s, &args, want.dw, want.db);
        return;
    }
    CHECK_LAUNCH(c, kernel, rows, args);
    check_compare(c, &dx, want.dx, 16);
    args.add = 1;
    CHECK_LAUNCH(c, kernel, rows, args);
    for (size_t i = 0; i < n; i++)
        want.dx[i] *= 2;
    check_compare(c, &dx, want.dx, 16);
}

static void layer_norm_backward(struct check *c)
{
    for (size_t i = 1; i < ARRAY_LEN(shapes); i++) /* in a column alone the terms cancel */
        backward_shape(c, &shapes[i], true, DX);
}

static void rms_norm_backward(struct check *c)
{
    for (size_t i = 1; i < ARRAY_LEN(shapes); i++)
        backward_shape(c, &shapes[i], false, DX);
}

static void norm_wide_backward(struct check *c)
{
    for (size_t i = 1; i < ARRAY_LEN(shapes); i++) {
        backward_shape(c, &shapes[i], true, DX_WIDE);
        backward_shape(c, &shapes[i], false, DX_WIDE);
    }
}

static void norm_backward_w(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        backward_shape(c, &shapes[i], false, WEIGHTS);
        if (i) /* xhat of a column alone is nothing but rounding */
            backward_shape(c, &shapes[i], true, WEIGHTS);
    }
}

const struct check_case checks_norm[] = {
    { "layer_norm", layer_norm, false },
    { "rms_norm", rms_norm, false },
    { "layer_norm_backward", layer_norm_backward, false },
    { "rms_norm_backward", rms_norm_backward, false },
    { "norm_wide", norm_wide, false },
    { "norm_wide_backward", norm_wide_backward, false },
    { "norm_backward_w", norm_backward_w, false },
};
const size_t n_checks_norm = ARRAY_LEN(checks_norm);
