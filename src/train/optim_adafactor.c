/* SPDX-License-Identifier: Apache-2.0 */
#include "base/int.h"
#include "gpu/kernels/adafactor.h"
#include "train/optim_inside.h"
#include <math.h>
#include <stdlib.h>

static const double tiny = 1e-30, least = 1e-3, most = 1, exponent = -0.8;
enum { PARTS_MOST = 128, ROWS_LEAST = 64 /* of a part */, USES = 3 };
enum { ROWS, COLUMNS /* of all matrices one after the other */, V = 0 /* of vectors */ };

struct adafactor {
    float *sums, *sizes, *uses;
    long long *places; /* of the vectors */
    size_t vectors;
};

static size_t sum_of(const struct params *p, bool rows)
{
    size_t sum = 0;
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].kind == PARAM_MATRIX)
            sum += rows ? p->list[i].rows : p->list[i].columns;
    return sum;
}

static size_t state(const struct optim_group *gr, const struct params *p, struct optim_state *out)
{
    if (gr->vectors) {
        out[V] = OPTIM_STATE(gr, "v", DTYPE_F32, .n = gr->n);
        return 1;
    }
    out[ROWS] = OPTIM_STATE(gr, "rows", DTYPE_F32, .n = sum_of(p, true));
    out[COLUMNS] = OPTIM_STATE(gr, "columns", DTYPE_F32, .n = sum_of(p, false));
    return 2;
}

static size_t rows_per_part(size_t rows)
{
    size_t n = div_up(rows, PARTS_MOST);
    return n < ROWS_LEAST ? ROWS_LEAST : n;
}

static int open_places(struct optim *o, struct cairn_error *err)
{
    struct adafactor *a = o->own;
    CLEANUP(mem_free) long long *places = calloc(2 * o->params->n + 1, sizeof(*places));
    if (!places)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    for (size_t i = 0; i < o->params->n; i++) {
        const struct param *p = &o->params->list[i];
        if (p->kind != PARAM_VECTOR)
            continue;
        places[2 * a->vectors] = (long long)p->at;
        places[2 * a->vectors++ + 1] = (long long)p->columns;
    }
    size_t bytes = (2 * a->vectors + 1) * sizeof(*places);
    return optim_workspace(o, bytes, (void **)&a->places, err) ||
                   gpu_upload(o->g, NULL, a->places, places, bytes, err) || gpu_wait(o->g, NULL, err)
               ? -1
               : 0;
}

/* Matrices follow each other: the workspace of the largest is enough for all. */
static int open_workspace(struct optim *o, struct cairn_error *err)
{
    size_t sums = 0, sizes = 0;
    for (size_t i = 0; i < o->params->n; i++) {
        const struct param *p = &o->params->list[i];
        if (p->kind != PARAM_MATRIX)
            continue;
        sums = at_least(sums, K_PARTS(p->rows, rows_per_part(p->rows)) * p->columns);
        sizes = at_least(sizes, 2 * K_ROW_GROUPS(p->rows, p->columns));
    }
    if (optim_alloc_own(o, sizeof(struct adafactor), err))
        return -1;
    struct adafactor *a = o->own;
    return optim_workspace(o, (sums + 1) * sizeof(float), (void **)&a->sums, err) ||
                   optim_workspace(o, (sizes + 1) * sizeof(float), (void **)&a->sizes, err) ||
                   optim_workspace(o, USES * sizeof(float), (void **)&a->uses, err) || open_places(o, err)
               ? -1
               : 0;
}

static struct adafactor_step step_of(const struct optim *o, int which, double rate)
{
    struct optim_weights to = optim_kernel_args(o, which, rate);
    double t = (double)o->applied + 1, rest = pow(t, exponent);
    return (struct adafactor_step){
        .by = to.by,
        .seed = to.seed,
        .stream = to.stream,
        .stochastic = to.stochastic,
        .scaled = o->o.scaled,
        .keep = (float)(1 - rest),
        .rest = (float)rest,
        .tiny = (float)tiny,
        .least = (float)least,
        .most = (float)most,
        .rate = o->o.relative ? (float)fmin(1e-2, 1 / sqrt(t)) : to.rate,
        .decay = to.decay,
    };
}

static int move_matrix(struct optim *o, struct gpu_stream *s, const struct adafactor_args *a,
                       struct cairn_error *err)
{
    size_t rows = (size_t)a->rows, columns = (size_t)a->columns, tiles = K_TILES(columns);
    enum gpu_storage storage = o->groups[0].storage;
    const struct {
        const char *kernel;
        size_t x, y;
    } chain[] = {
        { "adafactor_rows", K_WHOLE_GROUPS(rows, columns), 1 },
        { "adafactor_columns", K_PARTS(rows, (size_t)a->rows_per_part), tiles },
        { "adafactor_fold", tiles + 1, 1 },
        { "adafactor_size", K_ROW_GROUPS(rows, columns), 1 },
        { "adafactor_factor", 1, 1 },
        { "adafactor", K_ROW_GROUPS(rows, columns), 1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(chain); i++) {
        struct gpu_grid grid = { .x = (unsigned)chain[i].x, .y = (unsigned)chain[i].y };
        if (optim_launch(o, s, chain[i].kernel, storage, grid, a, sizeof(*a), err))
            return -1;
    }
    return 0;
}

static int move_matrices(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err)
{
    const struct adafactor *a = o->own;
    const struct optim_group *gr = &o->groups[0];
    float *rows = gr->state[ROWS], *columns = gr->state[COLUMNS];
    for (size_t i = 0; i < o->params->n; i++) {
        const struct param *p = &o->params->list[i];
        if (p->kind != PARAM_MATRIX)
            continue;
        struct adafactor_args args = {
            .step = step_of(o, 0, rate),
            .w = (char *)gr->w + p->at * storage_size(gr->storage),
            .master = gr->master ? gr->master + p->at : NULL,
            .g = gr->g + p->at,
            .rows_mean = rows,
            .columns_mean = columns,
            .sums = a->sums,
            .sizes = a->sizes,
            .uses = a->uses,
            .rows = (k_i64)p->rows,
            .columns = (k_i64)p->columns,
            .rows_per_part = (k_i64)rows_per_part(p->rows),
            .first = (k_i64)p->at,
        };
        args.step.rate = (float)((double)args.step.rate * optim_rate_of(o, p));
        if (move_matrix(o, s, &args, err))
            return -1;
        rows += p->rows;
        columns += p->columns;
    }
    return 0;
}

static int step(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err)
{
    const struct adafactor *a = o->own;
    const struct optim_group *gr = &o->groups[1];
    struct adafactor_vector_args args = {
        .step = step_of(o, 1, rate), .w = gr->w, .g = gr->g, .v = gr->state[V], .places = a->places
    };
    struct gpu_grid grid = { .x = (unsigned)a->vectors };
    o->rate = (double)args.step.rate;
    if (grid.x && optim_launch(o, s, "adafactor_vector", gr->storage, grid, &args, sizeof(args), err))
        return -1;
    return move_matrices(o, s, rate, err);
}

const struct optim_method optim_adafactor = { .state = state, .open = open_workspace, .step = step };
