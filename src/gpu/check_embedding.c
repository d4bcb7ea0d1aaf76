/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/embedding.h"
#include "gpu/id_index.h"

enum { MOST_ROWS = 200 };

static const struct shape {
    size_t rows, columns, limit, positions;
} shapes[] = {
    { 1, 1, 1, 0 }, { 7, 5, 3, 2 }, { 200, 64, 11, 50 }, { 33, 768, 1000, 0 }, { 12, 2100, 4, 12 }
};

/* Some ids often, some never. */
static void make_ids(struct check *c, const struct shape *s, int *ids)
{
    for (size_t i = 0; i < s->rows; i++) {
        double u = check_random(c);
        ids[i] = (int)(u * u * (double)s->limit);
    }
}

static void embedding(struct check *c)
{
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        const struct shape *s = &shapes[k];
        int ids[MOST_ROWS];
        make_ids(c, s, ids);
        size_t n = s->rows * s->columns;
        struct check_tensor table = check_input(c, s->limit * s->columns, 1),
                            positions = check_input(c, s->positions * s->columns, 1), y = check_output(c, n);
        struct embedding_args args = { .y = y.device,
                                       .table = table.device,
                                       .positions = s->positions ? positions.device : NULL,
                                       .ids = check_bytes(c, ids, s->rows * sizeof(int)),
                                       .rows = (k_i64)s->rows,
                                       .columns = (k_i64)s->columns,
                                       .limit = (k_i64)s->limit,
                                       .n_positions = (k_i64)s->positions };
        CHECK_LAUNCH(c, "embedding", ((struct gpu_grid){ .x = (unsigned)K_ROW_GROUPS(s->rows, s->columns) }),
                     args);
        double *want = check_doubles(c, n);
        for (size_t i = 0; i < n; i++) {
            size_t row = i / s->columns, column = i % s->columns;
            want[i] = table.host[(size_t)ids[row] * s->columns + column];
            if (s->positions)
                want[i] += positions.host[row % s->positions * s->columns + column];
        }
        check_compare(c, &y, want, 1);
    }
}

static void backward_shape(struct check *c, const struct shape *s, struct arena *a)
{
    int ids[MOST_ROWS];
    struct id_index lists;
    struct cairn_error err;
    make_ids(c, s, ids);
    if (id_index_build(a, ids, s->rows, (int)s->limit, &lists, &err)) {
        check_complain(c, "%s", err.msg);
        return;
    }
    struct check_tensor dy = check_input(c, s->rows * s->columns, 1),
                        dtable = check_input_f32(c, s->limit * s->columns, 1);
    struct embedding_backward_args args = { .dtable = dtable.device,
                                            .dy = dy.device,
                                            .ids = check_bytes(c, lists.ids, lists.n * sizeof(int)),
                                            .first = check_bytes(c, lists.first, (lists.n + 1) * sizeof(int)),
                                            .members = check_bytes(c, lists.members, s->rows * sizeof(int)),
                                            .columns = (k_i64)s->columns,
                                            .rows = (k_i64)s->rows,
                                            .limit = (k_i64)s->limit };
    double *want = check_doubles(c, dtable.n);
    for (size_t i = 0; i < dtable.n; i++)
        want[i] = dtable.host[i];
    for (size_t i = 0; i < dy.n; i++)
        want[(size_t)ids[i / s->columns] * s->columns + i % s->columns] += dy.host[i];
    CHECK_LAUNCH(c, "embedding_backward",
                 ((struct gpu_grid){ .x = (unsigned)lists.n, .y = (unsigned)K_TILES(s->columns) }), args);
    check_compare(c, &dtable, want, 32);
}

static void embedding_backward(struct check *c)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
        backward_shape(c, &shapes[k], &a);
}

const struct check_case checks_embedding[] = {
    { "embedding", embedding, false },
    { "embedding_backward", embedding_backward, false },
};
const size_t n_checks_embedding = ARRAY_LEN(checks_embedding);
