/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/move.h"
#include <stdlib.h>
#include <string.h>

static size_t width(const struct check *c)
{
    return check_storage(c) == GPU_F32 ? 4 : 2;
}

/* Compares bit for bit what came out with what `from` says lies at each place. */
static void compare_moved(struct check *c, const struct check_tensor *x, const struct check_tensor *y,
                          size_t (*from)(const void *context, size_t i), const void *context)
{
    size_t w = width(c);
    char *had = malloc(x->n * w), *want = malloc(y->n * w);
    if (!had || !want) {
        check_complain(c, "no memory");
    } else {
        check_read_bytes(c, had, x->device, x->n * w);
        for (size_t i = 0; i < y->n; i++)
            memcpy(want + i * w, had + from(context, i) * w, w);
        check_equal_bytes(c, y->device, want, y->n * w);
    }
    free(had);
    free(want);
}

struct matrix {
    size_t batch, rows, columns;
};

static size_t transposed(const void *context, size_t i)
{
    const struct matrix *m = context;
    size_t b = i / (m->rows * m->columns), column = i / m->rows % m->columns, row = i % m->rows;
    return (b * m->rows + row) * m->columns + column;
}

static void transpose(struct check *c)
{
    static const struct matrix shapes[] = {
        { 1, 1, 1 }, { 3, 5, 7 }, { 2, 64, 64 }, { 1, 200, 65 }, { 2, 63, 300 }
    };
    for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
        const struct matrix *m = &shapes[s];
        size_t n = m->batch * m->rows * m->columns;
        struct check_tensor x = check_input(c, n, 1), y = check_output(c, n);
        struct transpose_args args = {
            .y = y.device, .x = x.device, .rows = (k_i64)m->rows, .columns = (k_i64)m->columns
        };
        struct gpu_grid grid = { .x = (unsigned)((m->columns + MOVE_TILE - 1) / MOVE_TILE),
                                 .y = (unsigned)((m->rows + MOVE_TILE - 1) / MOVE_TILE),
                                 .z = (unsigned)m->batch };
        CHECK_LAUNCH(c, "transpose", grid, args);
        compare_moved(c, &x, &y, transposed, m);
    }
}

struct indexed {
    size_t columns;
    int index[70];
};

static size_t gathered(const void *context, size_t i)
{
    const struct indexed *t = context;
    return (size_t)t->index[i / t->columns] * t->columns + i % t->columns;
}

/* Each index once, in disorder: 37 has no common factor with 70. */
static struct indexed disorder(size_t columns)
{
    struct indexed t = { .columns = columns };
    for (size_t i = 0; i < ARRAY_LEN(t.index); i++)
        t.index[i] = (int)(i * 37 % ARRAY_LEN(t.index));
    return t;
}

static const size_t widths[] = { 1, 5, 64, 100, 768, 5000 };

static void gather_rows(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(widths); s++) {
        struct indexed t = disorder(widths[s]);
        size_t rows = ARRAY_LEN(t.index) - 11;
        struct check_tensor x = check_input(c, ARRAY_LEN(t.index) * t.columns, 1),
                            y = check_output(c, rows * t.columns);
        struct index_rows_args args = { .y = y.device,
                                        .x = x.device,
                                        .rows = (k_i64)rows,
                                        .index = check_bytes(c, t.index, sizeof(t.index)),
                                        .columns = (k_i64)t.columns,
                                        .limit = ARRAY_LEN(t.index) };
        CHECK_LAUNCH(c, "gather_rows", ((struct gpu_grid){ .x = (unsigned)K_ROW_GROUPS(rows, t.columns) }),
                     args);
        compare_moved(c, &x, &y, gathered, &t);
    }
}

static void scatter_rows(struct check *c)
{
    for (size_t s = 0; s < ARRAY_LEN(widths); s++) {
        struct indexed t = disorder(widths[s]), back = t;
        size_t rows = ARRAY_LEN(t.index);
        for (size_t i = 0; i < rows; i++)
            back.index[t.index[i]] = (int)i;
        struct check_tensor x = check_input(c, rows * t.columns, 1), y = check_output(c, rows * t.columns);
        struct index_rows_args args = { .y = y.device,
                                        .x = x.device,
                                        .rows = (k_i64)rows,
                                        .index = check_bytes(c, t.index, sizeof(t.index)),
                                        .columns = (k_i64)t.columns,
                                        .limit = (k_i64)rows };
        CHECK_LAUNCH(c, "scatter_rows", ((struct gpu_grid){ .x = (unsigned)K_ROW_GROUPS(rows, t.columns) }),
                     args);
        compare_moved(c, &x, &y, gathered, &back);
    }
}

static size_t permuted(const void *context, size_t i)
{
    const struct permute_args *a = context;
    size_t i3 = i % (size_t)a->n[3], rest = i / (size_t)a->n[3], i2 = rest % (size_t)a->n[2];
    rest /= (size_t)a->n[2];
    return rest / (size_t)a->n[1] * (size_t)a->step[0] + rest % (size_t)a->n[1] * (size_t)a->step[1] +
           i2 * (size_t)a->step[2] + i3;
}

/* B,T,H,D to B,H,T,D. */
static void permute(struct check *c)
{
    static const k_i64 shapes[][4] = {
        { 1, 1, 1, 1 }, { 2, 9, 3, 5 }, { 2, 33, 4, 64 }, { 1, 17, 3, 128 }, { 3, 2, 5, 700 }
    };
    for (size_t s = 0; s < ARRAY_LEN(shapes); s++) {
        k_i64 b = shapes[s][0], t = shapes[s][1], h = shapes[s][2], d = shapes[s][3];
        struct check_tensor x = check_input(c, (size_t)(b * t * h * d), 1), y = check_output(c, x.n);
        struct permute_args args = {
            .y = y.device, .x = x.device, .n = { b, h, t, d }, .step = { t * h * d, d, h * d }
        };
        CHECK_LAUNCH(c, "permute", ((struct gpu_grid){ .x = (unsigned)K_ROW_GROUPS(b * h * t, d) }), args);
        compare_moved(c, &x, &y, permuted, &args);
    }
}

const struct check_case checks_move[] = {
    { "transpose", transpose, false },
    { "gather_rows", gather_rows, false },
    { "scatter_rows", scatter_rows, false },
    { "permute", permute, false },
};
const size_t n_checks_move = ARRAY_LEN(checks_move);
