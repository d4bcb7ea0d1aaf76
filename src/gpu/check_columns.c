/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/columns.h"

/* rows_per_set 0: one set. */
static const struct shape {
    size_t rows, columns, rows_per_set, rows_per_part;
} shapes[] = {
    { 1, 1, 0, 8 },     { 13, 7, 0, 5 },  { 300, 64, 100, 32 },
    { 70, 257, 35, 9 }, { 9, 768, 1, 4 }, { 33, 5120, 11, 16 },
};

static struct gpu_grid row_groups(const struct shape *s)
{
    return (struct gpu_grid){ .x = (unsigned)K_ROW_GROUPS(s->rows, s->columns) };
}

static size_t set_of(const struct shape *s, size_t row)
{
    return s->rows_per_set ? row / s->rows_per_set : 0;
}

static size_t sets_of(const struct shape *s)
{
    return set_of(s, s->rows - 1) + 1;
}

static void bias_shape(struct check *c, const struct shape *s)
{
    size_t n = s->rows * s->columns;
    struct check_tensor x = check_input(c, n, 1), b = check_input_f32(c, s->columns, 1),
                        y = check_output(c, n);
    struct bias_args args = {
        .y = y.device, .x = x.device, .bias = b.device, .rows = (k_i64)s->rows, .columns = (k_i64)s->columns
    };
    CHECK_LAUNCH(c, "bias", row_groups(s), args);
    double *want = check_doubles(c, n);
    for (size_t i = 0; i < n; i++)
        want[i] = (double)x.host[i] + b.host[i % s->columns];
    check_compare(c, &y, want, 1);
}

static double *gated(struct check *c, const struct shape *s, const float *x, const float *z,
                     const float *gate)
{
    double *want = check_doubles(c, s->rows * s->columns);
    for (size_t i = 0; i < s->rows * s->columns; i++) {
        size_t at = set_of(s, i / s->columns) * s->columns + i % s->columns;
        want[i] = (x ? x[i] : 0) + (double)z[i] * (gate ? gate[at] : 1);
    }
    return want;
}

/* With and without an x, with and without a gate. */
static void gate_shape(struct check *c, const struct shape *s, const char *kernel, bool xy_f32, bool z_f32)
{
    size_t n = s->rows * s->columns;
    struct check_tensor x = xy_f32 ? check_input_f32(c, n, 1) : check_input(c, n, 1),
                        z = z_f32 ? check_input_f32(c, n, 1) : check_input(c, n, 1),
                        gate = check_input_f32(c, sets_of(s) * s->columns, 1);
    for (int i = 0; i < 4; i++) {
        bool has_x = i & 1, has_gate = i & 2;
        struct check_tensor y = xy_f32 ? check_output_f32(c, n) : check_output(c, n);
        struct gate_args args = { .y = y.device,
                                  .x = has_x ? x.device : NULL,
                                  .z = z.device,
                                  .gate = has_gate ? gate.device : NULL,
                                  .rows = (k_i64)s->rows,
                                  .columns = (k_i64)s->columns,
                                  .rows_per_gate = (k_i64)s->rows_per_set };
        CHECK_LAUNCH(c, kernel, row_groups(s), args);
        check_compare(c, &y, gated(c, s, has_x ? x.host : NULL, z.host, has_gate ? gate.host : NULL), 1);
    }
}

/* A row to add for each part of a set, and one for all of its parts. */
static void modulation(struct check *c)
{
    static const struct {
        size_t sets, parts, add_parts, columns;
    } cases[] = { { 1, 6, 6, 7 }, { 3, 6, 6, 1536 }, { 2, 2, 1, 5121 }, { 70, 2, 0, 33 } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t sets = cases[i].sets, parts = cases[i].parts, columns = cases[i].columns;
        size_t each = cases[i].add_parts == parts ? parts : 1, rows = sets * parts;
        struct check_tensor x = check_input_f32(c, parts * columns, 1),
                            add = check_input_f32(c, sets * each * columns, 1),
                            y = check_output_f32(c, rows * columns);
        struct modulation_args args = { .y = y.device,
                                        .x = x.device,
                                        .add = add.device,
                                        .sets = (k_i64)sets,
                                        .parts = (k_i64)parts,
                                        .add_parts = (k_i64)cases[i].add_parts,
                                        .columns = (k_i64)columns };
        CHECK_LAUNCH(c, "modulation", ((struct gpu_grid){ .x = (unsigned)K_ROW_GROUPS(rows, columns) }),
                     args);
        double *want = check_doubles(c, y.n);
        for (size_t k = 0; k < y.n; k++) {
            size_t part = k / columns / sets, set = k / columns % sets, column = k % columns;
            want[k] = (double)x.host[part * columns + column] +
                      add.host[(set * each + (each == parts ? part : 0)) * columns + column];
        }
        check_compare(c, &y, want, 1);
    }
}

/* Both passes, twice: the second time added to the first. */
static void sum_shape(struct check *c, const struct shape *s, const char *kernel, bool dot)
{
    size_t n = s->rows * s->columns, sets = sets_of(s);
    size_t parts = K_PARTS(s->rows_per_set ? s->rows_per_set : s->rows, s->rows_per_part);
    struct check_tensor x = check_input(c, n, 1), z = check_input(c, n, 1),
                        sums = check_output_f32(c, sets * parts * s->columns),
                        y = check_output_f32(c, sets * s->columns);
    struct column_sum_args args = { .sums = sums.device,
                                    .x = x.device,
                                    .z = z.device,
                                    .rows = (k_i64)s->rows,
                                    .columns = (k_i64)s->columns,
                                    .rows_per_set = (k_i64)s->rows_per_set,
                                    .rows_per_part = (k_i64)s->rows_per_part };
    struct fold_args fold = {
        .y = y.device, .sums = sums.device, .parts = (k_i64)parts, .columns = (k_i64)s->columns
    };
    unsigned tiles = (unsigned)K_TILES(s->columns), folds = (unsigned)K_FOLDS(s->columns);
    CHECK_LAUNCH(c, kernel, ((struct gpu_grid){ .x = (unsigned)(sets * parts), .y = tiles }), args);
    CHECK_LAUNCH(c, "fold", ((struct gpu_grid){ .x = (unsigned)sets, .y = folds }), fold);
    fold.add = 1;
    CHECK_LAUNCH(c, "fold", ((struct gpu_grid){ .x = (unsigned)sets, .y = folds }), fold);
    double *want = check_doubles(c, y.n);
    for (size_t i = 0; i < y.n; i++)
        want[i] = 0;
    for (size_t i = 0; i < n; i++)
        want[set_of(s, i / s->columns) * s->columns + i % s->columns] +=
            2 * (dot ? (double)x.host[i] * z.host[i] : x.host[i]);
    check_compare(c, &y, want, 32);
}

static void bias(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        bias_shape(c, &shapes[i]);
}

static void gate(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        gate_shape(c, &shapes[i], "gate", false, false);
}

static void gate_wide(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        gate_shape(c, &shapes[i], "gate_wide", true, false);
}

static void gate_wide_backward(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        gate_shape(c, &shapes[i], "gate_wide_backward", false, true);
}

static void column_sum(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        sum_shape(c, &shapes[i], "column_sum", false);
}

static void column_dot(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        sum_shape(c, &shapes[i], "column_dot", true);
}

/* Many parts of one set. */
static void fold(struct check *c)
{
    const struct shape s = { 1000, 130, 0, 1 };
    sum_shape(c, &s, "column_sum", false);
}

const struct check_case checks_columns[] = {
    { "bias", bias, false },
    { "gate", gate, false },
    { "gate_wide", gate_wide, false },
    { "gate_wide_backward", gate_wide_backward, false },
    { "modulation", modulation, true },
    { "column_sum", column_sum, false },
    { "column_dot", column_dot, false },
    { "fold", fold, false },
};
const size_t n_checks_columns = ARRAY_LEN(checks_columns);
