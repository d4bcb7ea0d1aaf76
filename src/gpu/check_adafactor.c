/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/adafactor.h"
#include <math.h>

enum { STEPS = 3, ROWS_PER_PART = 20 };
static const double tiny = 1e-30, least = 1e-3, most = 1, rate = 0.01, decay = 0.1;
static const struct {
    size_t rows, columns;
    bool scaled;
} shapes[] = {
    { 1, 1, false }, { 37, 13, true }, { 5, 3000, false }, { 90, 777, true }, { 300, 256, false }
};

static struct adafactor_step step_of(struct check *c, int t, bool scaled)
{
    const float by = 0.5f;
    double rest = pow(t, -0.8);
    return (struct adafactor_step){ .by = check_bytes(c, &by, sizeof(by)),
                                    .scaled = scaled,
                                    .keep = (float)(1 - rest),
                                    .rest = (float)rest,
                                    .tiny = (float)tiny,
                                    .least = (float)least,
                                    .most = (float)most,
                                    .rate = (float)rate,
                                    .decay = (float)decay };
}

static void launch_all(struct check *c, const struct adafactor_args *a)
{
    size_t rows = (size_t)a->rows, columns = (size_t)a->columns;
    unsigned tiles = (unsigned)K_TILES(columns), by_rows = (unsigned)K_ROW_GROUPS(rows, columns);
    unsigned parts = (unsigned)K_PARTS(rows, ROWS_PER_PART);
    CHECK_LAUNCH(c, "adafactor_rows", ((struct gpu_grid){ .x = (unsigned)K_WHOLE_GROUPS(rows, columns) }),
                 *a);
    CHECK_LAUNCH(c, "adafactor_columns", ((struct gpu_grid){ .x = parts, .y = tiles }), *a);
    CHECK_LAUNCH(c, "adafactor_fold", ((struct gpu_grid){ .x = tiles + 1 }), *a);
    CHECK_LAUNCH(c, "adafactor_size", ((struct gpu_grid){ .x = by_rows }), *a);
    CHECK_LAUNCH(c, "adafactor_factor", ((struct gpu_grid){ .x = 1 }), *a);
    CHECK_LAUNCH(c, "adafactor", ((struct gpu_grid){ .x = by_rows }), *a);
}

/* By definition: the means of rows r and columns q, then w, whose moves are u. */
static void define(const struct check_tensor *g, int t, bool scaled, size_t rows, size_t columns, double *r,
                   double *q, double *w, double *u)
{
    double rest = pow(t, -0.8), mean = 0, moves = 0, weights = 0, n = (double)rows * (double)columns;
    for (size_t i = 0; i < rows + columns; i++) {
        bool is_row = i < rows;
        size_t length = is_row ? columns : rows;
        double sum = 0, *to = is_row ? &r[i] : &q[i - rows];
        for (size_t k = 0; k < length; k++)
            sum += pow(0.5 * g->host[is_row ? i * columns + k : k * columns + i - rows], 2) + tiny;
        *to = (1 - rest) * *to + rest * sum / (double)length;
        mean += is_row ? *to / (double)rows : 0;
    }
    for (size_t i = 0; i < rows * columns; i++) {
        u[i] = 0.5 * g->host[i] / sqrt(r[i / columns] / mean * q[i % columns]);
        moves += u[i] * u[i] / n;
        weights += w[i] * w[i] / n;
    }
    double step = rate * (scaled ? fmax(least, sqrt(weights)) : 1);
    for (size_t i = 0; i < rows * columns; i++)
        w[i] = w[i] * (1 - step * decay) - step * u[i] / fmax(1, sqrt(moves) / most);
}

static void matrix(struct check *c, size_t rows, size_t columns, bool scaled)
{
    size_t n = rows * columns;
    struct check_tensor master = check_input_f32(c, n, 1), w = check_output(c, n),
                        r = check_input_f32(c, rows, 0), q = check_input_f32(c, columns, 0),
                        sums = check_output_f32(c, K_PARTS(rows, ROWS_PER_PART) * columns),
                        sizes = check_output_f32(c, 2 * K_ROW_GROUPS(rows, columns)),
                        uses = check_output_f32(c, 3);
    double *want_w = check_numbers(c, &master), *want_r = check_zeros(c, rows),
           *want_q = check_zeros(c, columns), *u = check_doubles(c, n);
    for (int t = 1; t <= STEPS && check_ok(c); t++) {
        struct check_tensor g = check_input_f32(c, n, 1);
        struct adafactor_args args = { .step = step_of(c, t, scaled),
                                       .w = w.device,
                                       .master = master.device,
                                       .g = g.device,
                                       .rows_mean = r.device,
                                       .columns_mean = q.device,
                                       .sums = sums.device,
                                       .sizes = sizes.device,
                                       .uses = uses.device,
                                       .rows = (k_i64)rows,
                                       .columns = (k_i64)columns,
                                       .rows_per_part = ROWS_PER_PART };
        launch_all(c, &args);
        define(&g, t, scaled, rows, columns, want_r, want_q, want_w, u);
    }
    check_compare(c, &r, want_r, 32);
    check_compare(c, &q, want_q, 32);
    check_compare(c, &master, want_w, 16);
    check_compare(c, &w, want_w, 16);
}

static void adafactor(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        matrix(c, shapes[i].rows, shapes[i].columns, shapes[i].scaled);
}

/* A factor that is not finite: nothing moves, also without a master copy. */
static void left_out(struct check *c)
{
    enum { ROWS = 20, COLUMNS = 30, N = ROWS * COLUMNS };
    const float by = NAN;
    struct check_tensor w = check_input(c, N, 1), g = check_input_f32(c, N, 1),
                        r = check_input_f32(c, ROWS, 1), q = check_input_f32(c, COLUMNS, 1),
                        unused = check_output_f32(c, N);
    struct adafactor_args args = { .step = step_of(c, 1, false),
                                   .w = w.device,
                                   .g = g.device,
                                   .rows_mean = r.device,
                                   .columns_mean = q.device,
                                   .sums = unused.device,
                                   .sizes = unused.device,
                                   .uses = unused.device,
                                   .rows = ROWS,
                                   .columns = COLUMNS,
                                   .rows_per_part = ROWS_PER_PART };
    double *same = check_doubles(c, N), *same_r = check_doubles(c, ROWS);
    args.step.by = check_bytes(c, &by, sizeof(by));
    for (size_t i = 0; i < N; i++)
        same[i] = w.host[i];
    for (size_t i = 0; i < ROWS; i++)
        same_r[i] = r.host[i];
    launch_all(c, &args);
    check_compare(c, &w, same, 0.001);
    check_compare(c, &r, same_r, 0.001);
}

/* Vectors of several lengths with gaps between, which stay as they are. */
static void vector(struct check *c)
{
    enum { VECTORS = 3, N = 6000 };
    static const k_i64 places[2 * VECTORS] = { 0, 1, 256, 700, 1024, 4700 };
    struct check_tensor w = check_input(c, N, 1), g = check_input_f32(c, N, 1), v = check_input_f32(c, N, 0);
    struct adafactor_vector_args args = { .step = step_of(c, 1, true),
                                          .w = w.device,
                                          .g = g.device,
                                          .v = v.device,
                                          .places = check_bytes(c, places, sizeof(places)) };
    double *want = check_doubles(c, N), *want_v = check_doubles(c, N);
    CHECK_LAUNCH(c, "adafactor_vector", ((struct gpu_grid){ .x = VECTORS }), args);
    for (size_t i = 0; i < N; i++) {
        want[i] = w.host[i];
        want_v[i] = 0;
    }
    for (size_t k = 0; k < VECTORS; k++) {
        size_t at = (size_t)places[2 * k], n = (size_t)places[2 * k + 1];
        double size = 0;
        for (size_t i = at; i < at + n; i++) {
            want_v[i] = pow(0.5 * g.host[i], 2) + tiny;
            size += want[i] * want[i] / (double)n;
        }
        /* Of a first step each u is 1 or -1. */
        double step = rate * fmax(least, sqrt(size));
        for (size_t i = at; i < at + n; i++)
            want[i] = want[i] * (1 - step * decay) - step * (g.host[i] > 0 ? 1 : -1);
    }
    check_compare(c, &v, want_v, 16);
    check_compare(c, &w, want, 16);
}

const struct check_case checks_adafactor[] = {
    { "adafactor", adafactor, false },
    { "adafactor", left_out, false },
    { "adafactor_vector", vector, false },
};
const size_t n_checks_adafactor = ARRAY_LEN(checks_adafactor);
