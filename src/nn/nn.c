/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/nn.h"
#include "gpu/kernels/columns.h"
#include "gpu/kernels/cross_entropy.h"
#include "gpu/kernels/elementwise.h"
#include "gpu/kernels/embedding.h"
#include "gpu/kernels/norm.h"
#include "gpu/kernels/random.h"
#include "nn/nn_inside.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { IGNORE = -1 };

/* Sums over rows are made in parts: enough of them to keep a device busy, few enough to be added up
 * quickly. */
static size_t rows_per_part(size_t rows)
{
    enum { LEAST = 64, PARTS = 128 };
    return rows <= (size_t)LEAST * PARTS ? LEAST : (rows + PARTS - 1) / PARTS;
}

int nn_open(struct nn *nn, struct gpu *g, enum gpu_storage storage, struct cairn_error *err)
{
    *nn = (struct nn){ .g = g, .storage = storage };
    return blas_open(g, &nn->blas, err);
}

void nn_close(struct nn *nn)
{
    if (!nn->g)
        return;
    blas_close(nn->blas);
    gpu_free(nn->g, GPU_MEM_DEVICE, nn->sums);
    gpu_free(nn->g, GPU_MEM_DEVICE, nn->conv_work);
    *nn = (struct nn){ 0 };
}

const struct gpu_info *nn_device(const struct nn *nn)
{
    return nn->as ? nn->as : gpu_info(nn->g);
}

static size_t parts_of(size_t rows)
{
    return K_PARTS(rows, rows_per_part(rows));
}

/* A norm has two vectors. */
static size_t sums_bytes(size_t sets, size_t rows, size_t columns)
{
    return 2 * sets * parts_of(rows) * columns * sizeof(float);
}

size_t nn_reserve_bytes(size_t rows, size_t columns)
{
    return sums_bytes(1, rows, columns);
}

int nn_reserve_sets(struct nn *nn, size_t sets, size_t rows, size_t columns, struct cairn_error *err)
{
    size_t bytes = sums_bytes(sets, rows, columns);
    if (bytes <= nn->sums_bytes)
        return 0;
    gpu_free(nn->g, GPU_MEM_DEVICE, nn->sums);
    nn->sums = NULL;
    nn->sums_bytes = 0;
    if (gpu_alloc(nn->g, GPU_MEM_DEVICE, bytes, &nn->sums, err))
        return -1;
    nn->sums_bytes = bytes;
    return 0;
}

int nn_reserve(struct nn *nn, size_t rows, size_t columns, struct cairn_error *err)
{
    return nn_reserve_sets(nn, 1, rows, columns, err);
}

void nn_at(struct nn *nn, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(nn->where, sizeof(nn->where), fmt, ap);
    va_end(ap);
}

/* ---- launching ---- */

int nn_fail_at(struct nn *nn, const char *op, struct cairn_error *err)
{
    return cairn_wrap(err, "%s, %s", nn->where, op);
}

int nn_report_op(struct nn *nn, struct nn_event e, struct cairn_error *err)
{
    if (!nn->watcher)
        return 0;
    e.where = nn->where;
    return nn->watcher->after(nn->watcher, nn, &e, err);
}

size_t nn_elem_bytes(const struct nn *nn)
{
    return nn->storage == GPU_F32 ? 4 : 2;
}

struct gpu_grid nn_grid_over(size_t n)
{
    return (struct gpu_grid){ .x = (unsigned)K_GROUPS(n) };
}

int nn_launch(struct nn *nn, const struct nn_launch *l, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    if (gpu_kernel(nn->g, l->kernel, l->storage, &k, err) ||
        gpu_launch(nn->g, nn->stream, k, l->grid, l->args, l->args_size, err))
        return nn_fail_at(nn, l->kernel, err);
    struct nn_event e = {
        .op = l->kernel,
        .out = { { l->out, l->n } },
        .storage = l->f32_out ? GPU_F32 : l->storage,
        .flops = l->flops,
        .bytes =
            l->bytes != 0 ? l->bytes : (double)l->n * (double)l->arrays * (l->storage == GPU_F32 ? 4 : 2),
    };
    return nn_report_op(nn, e, err);
}

/* ---- linear ---- */

int nn_gemm(struct nn *nn, const char *op, const struct gemm_args *args, const void *slope_of,
            struct cairn_error *err)
{
    if (slope_of ? blas_gemm_gelu_back(nn->blas, nn->stream, nn->storage, args, slope_of, err)
                 : blas_gemm(nn->blas, nn->stream, nn->storage, args, 1, err))
        return nn_fail_at(nn, op, err);
    double m = (double)args->m, n = (double)args->n, k = (double)args->k, elem = (double)nn_elem_bytes(nn);
    bool whole = args->c_stride == args->n;
    struct nn_event e = {
        .op = op,
        .out = { { args->c, whole ? (size_t)(m * n) : 0 } },
        .storage = args->c_f32 ? GPU_F32 : nn->storage,
        .flops = 2 * m * n * k,
        .bytes = (m * k + k * n) * elem + m * n * ((args->c_f32 ? 4 : elem) + (slope_of ? elem : 0)),
    };
    return nn_report_op(nn, e, err);
}

static float or_one(float alpha)
{
    return alpha == 0 ? 1 : alpha;
}

int nn_linear(struct nn *nn, const struct nn_linear *l, struct cairn_error *err)
{
    struct gemm_args args = {
        .c = l->y,
        .before = l->before,
        .a = l->x,
        .b = l->w,
        .residual = l->residual,
        .bias = l->bias,
        .m = (k_i64)l->rows,
        .n = (k_i64)l->out,
        .k = (k_i64)l->in,
        .a_stride = (k_i64)l->in,
        .b_stride = (k_i64)l->in,
        .c_stride = (k_i64)(l->y_stride ? l->y_stride : l->out),
        .alpha = or_one(l->alpha),
        .beta = l->add ? 1 : 0,
        .b_transposed = 1,
        .c_f32 = l->y_f32 && nn->storage != GPU_F32,
        .gelu = l->before != NULL,
    };
    return nn_gemm(nn, "linear", &args, NULL, err);
}

/* ---- sums over rows ---- */

/* Rows come in sets of `rows`, each with a sum of its own, made in parts. */
struct sets {
    size_t n, rows, parts;
};

static struct sets sets_of(size_t rows, size_t rows_per_set)
{
    size_t per_set = rows_per_set ? rows_per_set : rows;
    return (struct sets){ (rows + per_set - 1) / per_set, per_set, parts_of(per_set) };
}

/* y[set] += the sum of its parts, which are [set][part][columns]. */
static int fold(struct nn *nn, float *y, const float *sums, struct sets s, size_t columns,
                struct cairn_error *err)
{
    struct fold_args args = {
        .y = y, .sums = sums, .parts = (k_i64)s.parts, .columns = (k_i64)columns, .add = 1
    };
    struct nn_launch launch = {
        .kernel = "fold",
        .storage = GPU_F32,
        .grid = { .x = (unsigned)s.n, .y = (unsigned)K_FOLDS(columns) },
        .args = &args,
        .args_size = sizeof(args),
        NN_OUT(y, s.n * columns, 1),
    };
    return nn_launch(nn, &launch, err);
}

int nn_add_sums(struct nn *nn, const struct nn_sums *s, struct cairn_error *err)
{
    struct sets sets = sets_of(s->rows, s->rows_per_set);
    struct column_sum_args args = {
        .sums = nn->sums,
        .x = s->x,
        .z = s->z,
        .rows = (k_i64)s->rows,
        .columns = (k_i64)s->columns,
        .rows_per_set = (k_i64)s->rows_per_set,
        .rows_per_part = (k_i64)rows_per_part(sets.rows),
    };
    struct gpu_grid grid = { .x = (unsigned)(sets.n * sets.parts), .y = (unsigned)K_TILES(s->columns) };
    assert(sums_bytes(sets.n, sets.rows, s->columns) <= nn->sums_bytes);
    if (NN_LAUNCH(nn, s->z ? "column_dot" : "column_sum", grid, args,
                  NN_OUT(NULL, s->rows * s->columns, s->z ? 2 : 1), err))
        return -1;
    return fold(nn, s->y, nn->sums, sets, s->columns, err);
}

/* ---- linear, back ---- */

int nn_linear_back(struct nn *nn, const struct nn_linear_back *l, struct cairn_error *err)
{
    k_i64 rows = (k_i64)l->rows, in = (k_i64)l->in, out = (k_i64)l->out;
    k_i64 dy_stride = l->dy_stride ? (k_i64)l->dy_stride : out;
    struct gemm_args dx = {
        .c = l->dx,
        .a = l->dy,
        .b = l->w,
        .m = rows,
        .n = in,
        .k = out,
        .a_stride = dy_stride,
        .b_stride = in,
        .c_stride = in,
        .alpha = or_one(l->alpha),
        .beta = l->add ? 1 : 0,
    };
    struct gemm_args dw = {
        .c = l->dw,
        .a = l->dy,
        .b = l->x,
        .m = out,
        .n = in,
        .k = rows,
        .a_stride = dy_stride,
        .b_stride = in,
        .c_stride = in,
        .alpha = or_one(l->alpha),
        .beta = 1,
        .a_transposed = 1,
        .c_f32 = 1,
    };
    if (l->dx && nn_gemm(nn, "linear_dx", &dx, l->slope_of, err))
        return -1;
    if (l->dw && nn_gemm(nn, "linear_dw", &dw, NULL, err))
        return -1;
    struct nn_sums bias = { .y = l->dbias, .x = l->dy, .rows = l->rows, .columns = l->out };
    return l->dbias ? nn_add_sums(nn, &bias, err) : 0;
}

/* ---- norms ---- */

/* Each kind has a kernel of its own; both, where x is f32 in another storage, have one. */
static bool norm_is_wide(const struct nn *nn, const struct nn_norm *n)
{
    return n->wide && nn->storage != GPU_F32;
}

/* 0: all rows have one w and b, which kernels need not look for and may read once. */
static k_i64 rows_per_w(const struct nn_norm *n)
{
    return n->rows_per_w < n->rows ? (k_i64)n->rows_per_w : 0;
}

int nn_norm(struct nn *nn, const struct nn_norm *n, struct cairn_error *err)
{
    bool rms = n->kind == NN_NORM_RMS, wide = norm_is_wide(nn, n);
    struct norm_args args = {
        .y = n->y,
        .mean = rms ? NULL : n->mean,
        .rstd = n->rstd,
        .x = n->x,
        .w = n->w,
        .b = n->b,
        .rows = (k_i64)n->rows,
        .columns = (k_i64)n->columns,
        .rows_per_w = rows_per_w(n),
        .epsilon = n->epsilon,
        .w_plus = n->w_plus,
    };
    struct gpu_grid grid = { .x = (unsigned)(wide ? n->rows : K_NORM_GROUPS(n->rows, n->columns)) };
    return NN_LAUNCH(nn,
                     wide  ? "norm_wide"
                     : rms ? "rms_norm"
                           : "layer_norm",
                     grid, args, NN_OUT(n->y, n->rows * n->columns, wide ? 3 : 2), err);
}

static int norm_weights_back(struct nn *nn, const struct nn_norm *n, const struct nn_norm_back *b,
                             struct cairn_error *err)
{
    struct sets sets = sets_of(n->rows, n->rows_per_w);
    float *sums = nn->sums, *bias_sums = b->db ? sums + sets.n * sets.parts * n->columns : NULL;
    struct norm_weights_args args = {
        .dw = sums,
        .db = bias_sums,
        .dy = b->dy,
        .x = n->x,
        .mean = n->kind == NN_NORM_RMS ? NULL : n->mean,
        .rstd = n->rstd,
        .rows = (k_i64)n->rows,
        .columns = (k_i64)n->columns,
        .rows_per_w = (k_i64)n->rows_per_w,
        .rows_per_part = (k_i64)rows_per_part(sets.rows),
    };
    struct gpu_grid grid = { .x = (unsigned)(sets.n * sets.parts), .y = (unsigned)K_TILES(n->columns) };
    assert(sums_bytes(sets.n, sets.rows, n->columns) <= nn->sums_bytes);
    if (NN_LAUNCH(nn, "norm_backward_w", grid, args, NN_OUT(NULL, n->rows * n->columns, 2), err))
        return -1;
    if (b->db == b->dw + sets.n * n->columns) { /* side by side: one launch folds both */
        sets.n *= 2;
        return fold(nn, b->dw, sums, sets, n->columns, err);
    }
    if (fold(nn, b->dw, sums, sets, n->columns, err))
        return -1;
    return b->db ? fold(nn, b->db, bias_sums, sets, n->columns, err) : 0;
}

int nn_norm_back(struct nn *nn, const struct nn_norm *n, const struct nn_norm_back *b,
                 struct cairn_error *err)
{
    bool rms = n->kind == NN_NORM_RMS, wide = norm_is_wide(nn, n);
    struct norm_backward_args args = {
        .dx = b->dx,
        .dy = b->dy,
        .x = n->x,
        .w = n->w,
        .mean = rms ? NULL : n->mean,
        .rstd = n->rstd,
        .rows = (k_i64)n->rows,
        .columns = (k_i64)n->columns,
        .rows_per_w = rows_per_w(n),
        .w_plus = n->w_plus,
        .add = b->add,
    };
    struct nn_launch launch = {
        .kernel = wide  ? "norm_wide_backward"
                  : rms ? "rms_norm_backward"
                        : "layer_norm_backward",
        .storage = nn->storage,
        .grid = { .x = (unsigned)(wide ? n->rows : K_WHOLE_GROUPS(n->rows, n->columns)) },
        .args = &args,
        .args_size = sizeof(args),
        .f32_out = wide,
        NN_OUT(b->dx, n->rows * n->columns, (wide ? 5 : 3) + (b->add ? (wide ? 2 : 1) : 0)),
    };
    assert(!wide || !b->dw);
    if (b->dw && norm_weights_back(nn, n, b, err))
        return -1;
    return nn_launch(nn, &launch, err);
}

/* ---- elementwise ---- */

int nn_gelu(struct nn *nn, void *y, const void *x, size_t n, struct cairn_error *err)
{
    struct map_args args = { .y = y, .x = x, .n = (k_i64)n };
    return NN_LAUNCH(nn, "gelu", nn_grid_over(n), args, NN_OUT(y, n, 2), err);
}

int nn_gelu_back(struct nn *nn, void *dx, const void *dy, const void *x, size_t n, struct cairn_error *err)
{
    struct map_backward_args args = { .dx = dx, .dy = dy, .x = x, .n = (k_i64)n };
    return NN_LAUNCH(nn, "gelu_backward", nn_grid_over(n), args, NN_OUT(dx, n, 3), err);
}

int nn_gelu_erf(struct nn *nn, void *y, const void *x, size_t n, struct cairn_error *err)
{
    struct map_args args = { .y = y, .x = x, .n = (k_i64)n };
    return NN_LAUNCH(nn, "gelu_erf", nn_grid_over(n), args, NN_OUT(y, n, 2), err);
}

int nn_silu(struct nn *nn, void *y, const void *x, size_t n, struct cairn_error *err)
{
    struct map_args args = { .y = y, .x = x, .n = (k_i64)n };
    return NN_LAUNCH(nn, "silu", nn_grid_over(n), args, NN_OUT(y, n, 2), err);
}

int nn_silu_back(struct nn *nn, void *dx, const void *dy, const void *x, size_t n, struct cairn_error *err)
{
    struct map_backward_args args = { .dx = dx, .dy = dy, .x = x, .n = (k_i64)n };
    return NN_LAUNCH(nn, "silu_backward", nn_grid_over(n), args, NN_OUT(dx, n, 3), err);
}

int nn_swiglu(struct nn *nn, void *y, const void *gate, const void *up, size_t n, struct cairn_error *err)
{
    struct swiglu_args args = { .y = y, .gate = gate, .up = up, .n = (k_i64)n };
    return NN_LAUNCH(nn, "swiglu", nn_grid_over(n), args, NN_OUT(y, n, 3), err);
}

int nn_geglu(struct nn *nn, const struct nn_geglu *g, struct cairn_error *err)
{
    struct geglu_args args = {
        .y = g->y, .x = g->x, .rows = (k_i64)g->rows, .columns = (k_i64)g->columns, .factor = g->factor
    };
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(g->rows, g->columns) };
    return NN_LAUNCH(nn, "geglu", grid, args, NN_OUT(g->y, g->rows * g->columns, 3), err);
}

int nn_swiglu_back(struct nn *nn, const struct nn_swiglu_back *s, struct cairn_error *err)
{
    struct swiglu_backward_args args = {
        .dgate = s->dgate, .dup = s->dup, .dy = s->dy, .gate = s->gate, .up = s->up, .n = (k_i64)s->n
    };
    return NN_LAUNCH(nn, "swiglu_backward", nn_grid_over(s->n), args, NN_OUT(s->dgate, s->n, 5), err);
}

int nn_add(struct nn *nn, void *y, const void *x, const void *z, size_t n, struct cairn_error *err)
{
    struct combine_args args = { .y = y, .x = x, .z = z, .n = (k_i64)n, .factor = 1 };
    return NN_LAUNCH(nn, "add", nn_grid_over(n), args, NN_OUT(y, n, 3), err);
}

int nn_dropout(struct nn *nn, void *y, const void *x, size_t n, const struct nn_drop *d,
               struct cairn_error *err)
{
    if (d->rate == 0)
        return y == x ? 0 : gpu_copy(nn->g, nn->stream, y, x, n * nn_elem_bytes(nn), err);
    struct dropout_args args = {
        .y = y,
        .x = x,
        .n = (k_i64)n,
        .seed = d->seed,
        .stream = d->stream,
        .threshold = (k_u32)((double)d->rate * 4294967296.0),
        .scale = 1 / (1 - d->rate),
    };
    return NN_LAUNCH(nn, "dropout", nn_grid_over(n), args, NN_OUT(y, n, 2), err);
}

/* ---- the two ends ---- */

int nn_embedding(struct nn *nn, const struct nn_embedding *e, struct cairn_error *err)
{
    struct embedding_args args = {
        .y = e->y,
        .table = e->table,
        .positions = e->positions,
        .ids = e->ids,
        .rows = (k_i64)e->rows,
        .columns = (k_i64)e->columns,
        .limit = (k_i64)e->limit,
        .n_positions = (k_i64)e->n_positions,
    };
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(e->rows, e->columns) };
    return NN_LAUNCH(nn, "embedding", grid, args, NN_OUT(e->y, e->rows * e->columns, 2), err);
}

int nn_embedding_back(struct nn *nn, const struct nn_embedding_back *e, struct cairn_error *err)
{
    struct embedding_backward_args args = {
        .dtable = e->dtable,
        .dy = e->dy,
        .ids = e->ids,
        .first = e->first,
        .members = e->members,
        .columns = (k_i64)e->columns,
        .rows = (k_i64)e->rows,
        .limit = (k_i64)e->limit,
    };
    struct gpu_grid grid = { .x = (unsigned)e->lists, .y = (unsigned)K_TILES(e->columns) };
    return NN_LAUNCH(nn, "embedding_backward", grid, args, NN_OUT(NULL, e->rows * e->columns, 1), err);
}

int nn_cross_entropy(struct nn *nn, const struct nn_cross_entropy *c, struct cairn_error *err)
{
    struct cross_entropy_args args = {
        .loss = c->loss,
        .dlogits = c->dlogits,
        .logits = c->logits,
        .targets = c->targets,
        .rows = (k_i64)c->rows,
        .columns = (k_i64)c->columns,
        .stride = (k_i64)c->stride,
        .smoothing = c->smoothing,
        .scale = c->scale,
        .ignore = IGNORE,
    };
    struct gpu_grid grid = { .x = (unsigned)c->rows };
    return NN_LAUNCH(nn, "cross_entropy", grid, args,
                     NN_OUT(c->dlogits, c->dlogits ? c->rows * c->stride : 0, 2), err);
}
