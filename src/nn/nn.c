/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/nn.h"
#include "gpu/kernels/columns.h"
#include "gpu/kernels/cross_entropy.h"
#include "gpu/kernels/elementwise.h"
#include "gpu/kernels/embedding.h"
#include "gpu/kernels/norm.h"
#include "gpu/kernels/random.h"
#include "nn/nn_inside.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { IGNORE = -1 };

/* Sums over rows are made in parts: enough of them to keep a device busy, few enough to be added up quickly. */
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
    *nn = (struct nn){ 0 };
}

static size_t part_bytes(size_t rows, size_t columns)
{
    return K_PARTS(rows, rows_per_part(rows)) * columns * sizeof(float);
}

size_t nn_reserve_bytes(size_t rows, size_t columns)
{
    return 2 * part_bytes(rows, columns); /* a norm has two vectors */
}

int nn_reserve(struct nn *nn, size_t rows, size_t columns, struct cairn_error *err)
{
    size_t bytes = nn_reserve_bytes(rows, columns);
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
    struct cairn_error inner = *err;
    snprintf(err->msg, sizeof(err->msg), "%s, %s: %s", nn->where, op, inner.msg);
    return -1;
}

int nn_tell(struct nn *nn, struct nn_event e, struct cairn_error *err)
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
        .storage = l->storage,
        .bytes = (double)l->n * (double)l->arrays * (l->storage == GPU_F32 ? 4 : 2),
    };
    return nn_tell(nn, e, err);
}

/* ---- linear ---- */

static int gemm(struct nn *nn, const char *op, const struct gemm_args *args, const void *slope_of,
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
    return nn_tell(nn, e, err);
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
        .gelu = l->before != NULL,
    };
    return gemm(nn, "linear", &args, NULL, err);
}

/* y += the sum of the parts in nn->sums; of several sets, whose parts and results lie one behind the other. */
static int fold(struct nn *nn, float *y, size_t first_set, size_t sets, size_t parts, size_t columns,
                struct cairn_error *err)
{
    struct fold_args args = { .y = y,
                              .sums = (float *)nn->sums + first_set * parts * columns,
                              .parts = (k_i64)parts,
                              .columns = (k_i64)columns,
                              .add = 1 };
    struct nn_launch launch = {
        .kernel = "fold",
        .storage = GPU_F32,
        .grid = { .x = (unsigned)sets, .y = (unsigned)K_FOLDS(columns) },
        .args = &args,
        .args_size = sizeof(args),
        NN_OUT(y, sets * columns, 1),
    };
    return nn_launch(nn, &launch, err);
}

/* y += the sum of x's rows. */
static int add_row_sums(struct nn *nn, float *y, const void *x, size_t rows, size_t columns,
                        struct cairn_error *err)
{
    struct column_sum_args sum = { .sums = nn->sums,
                                   .x = x,
                                   .rows = (k_i64)rows,
                                   .columns = (k_i64)columns,
                                   .rows_per_part = (k_i64)rows_per_part(rows) };
    size_t parts = K_PARTS(rows, rows_per_part(rows));
    struct gpu_grid grid = { .x = (unsigned)parts, .y = (unsigned)K_TILES(columns) };
    if (NN_LAUNCH(nn, "column_sum", grid, sum, NN_OUT(NULL, rows * columns, 1), err))
        return -1;
    return fold(nn, y, 0, 1, parts, columns, err);
}

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
    if (l->dx && gemm(nn, "linear_dx", &dx, l->slope_of, err))
        return -1;
    if (l->dw && gemm(nn, "linear_dw", &dw, NULL, err))
        return -1;
    return l->dbias ? add_row_sums(nn, l->dbias, l->dy, l->rows, l->out, err) : 0;
}

/* ---- norms ---- */

int nn_norm(struct nn *nn, const struct nn_norm *n, struct cairn_error *err)
{
    struct norm_args args = {
        .y = n->y,
        .mean = n->mean,
        .rstd = n->rstd,
        .x = n->x,
        .w = n->w,
        .b = n->b,
        .rows = (k_i64)n->rows,
        .columns = (k_i64)n->columns,
        .epsilon = n->epsilon,
    };
    struct gpu_grid grid = { .x = (unsigned)K_NORM_GROUPS(n->rows, n->columns) };
    return NN_LAUNCH(nn, n->kind == NN_NORM_RMS ? "rms_norm" : "layer_norm", grid, args,
                     NN_OUT(n->y, n->rows * n->columns, 2), err);
}

static int norm_weights_back(struct nn *nn, const struct nn_norm *n, const void *dy, float *dw, float *db,
                             struct cairn_error *err)
{
    size_t parts = K_PARTS(n->rows, rows_per_part(n->rows));
    float *sums = nn->sums, *bias_sums = db ? sums + parts * n->columns : NULL;
    struct norm_weights_args args = {
        .dw = sums,
        .db = bias_sums,
        .dy = dy,
        .x = n->x,
        .mean = n->kind == NN_NORM_RMS ? NULL : n->mean,
        .rstd = n->rstd,
        .rows = (k_i64)n->rows,
        .columns = (k_i64)n->columns,
        .rows_per_part = (k_i64)rows_per_part(n->rows),
    };
    struct gpu_grid grid = { .x = (unsigned)parts, .y = (unsigned)K_TILES(n->columns) };
    bool together = db == dw + n->columns;
    if (NN_LAUNCH(nn, "norm_backward_w", grid, args, NN_OUT(NULL, n->rows * n->columns, 2), err) ||
        fold(nn, dw, 0, together ? 2 : 1, parts, n->columns, err))
        return -1;
    return db && !together ? fold(nn, db, 1, 1, parts, n->columns, err) : 0;
}

int nn_norm_back(struct nn *nn, const struct nn_norm *n, const void *dy, void *dx, bool add, float *dw,
                 float *db, struct cairn_error *err)
{
    struct norm_backward_args args = {
        .dx = dx,
        .dy = dy,
        .x = n->x,
        .w = n->w,
        .mean = n->mean,
        .rstd = n->rstd,
        .rows = (k_i64)n->rows,
        .columns = (k_i64)n->columns,
        .add = add,
    };
    struct gpu_grid grid = { .x = (unsigned)K_WHOLE_GROUPS(n->rows, n->columns) };
    const char *kernel = n->kind == NN_NORM_RMS ? "rms_norm_backward" : "layer_norm_backward";
    if (dw && norm_weights_back(nn, n, dy, dw, db, err))
        return -1;
    return NN_LAUNCH(nn, kernel, grid, args, NN_OUT(dx, n->rows * n->columns, add ? 4 : 3), err);
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

int nn_swiglu(struct nn *nn, void *y, const void *gate, const void *up, size_t n, struct cairn_error *err)
{
    struct swiglu_args args = { .y = y, .gate = gate, .up = up, .n = (k_i64)n };
    return NN_LAUNCH(nn, "swiglu", nn_grid_over(n), args, NN_OUT(y, n, 3), err);
}

int nn_swiglu_back(struct nn *nn, void *dgate, void *dup, const void *dy, const void *gate, const void *up,
                   size_t n, struct cairn_error *err)
{
    struct swiglu_backward_args args = {
        .dgate = dgate, .dup = dup, .dy = dy, .gate = gate, .up = up, .n = (k_i64)n
    };
    return NN_LAUNCH(nn, "swiglu_backward", nn_grid_over(n), args, NN_OUT(dgate, n, 5), err);
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

int nn_embedding(struct nn *nn, void *y, const void *table, const void *positions, const int *ids,
                 size_t rows, size_t columns, size_t limit, size_t n_positions, struct cairn_error *err)
{
    struct embedding_args args = {
        .y = y,
        .table = table,
        .positions = positions,
        .ids = ids,
        .rows = (k_i64)rows,
        .columns = (k_i64)columns,
        .limit = (k_i64)limit,
        .n_positions = (k_i64)n_positions,
    };
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(rows, columns) };
    return NN_LAUNCH(nn, "embedding", grid, args, NN_OUT(y, rows * columns, 2), err);
}

int nn_embedding_back(struct nn *nn, float *dtable, const void *dy, const int *ids, const int *first,
                      const int *members, size_t lists, size_t rows, size_t columns, size_t limit,
                      struct cairn_error *err)
{
    struct embedding_backward_args args = {
        .dtable = dtable,
        .dy = dy,
        .ids = ids,
        .first = first,
        .members = members,
        .columns = (k_i64)columns,
        .rows = (k_i64)rows,
        .limit = (k_i64)limit,
    };
    struct gpu_grid grid = { .x = (unsigned)lists, .y = (unsigned)K_TILES(columns) };
    return NN_LAUNCH(nn, "embedding_backward", grid, args, NN_OUT(NULL, rows * columns, 1), err);
}

int nn_cross_entropy(struct nn *nn, float *loss, void *dlogits, const void *logits, const int *targets,
                     size_t rows, size_t columns, size_t stride, float scale, float smoothing,
                     struct cairn_error *err)
{
    struct cross_entropy_args args = {
        .loss = loss,
        .dlogits = dlogits,
        .logits = logits,
        .targets = targets,
        .rows = (k_i64)rows,
        .columns = (k_i64)columns,
        .stride = (k_i64)stride,
        .smoothing = smoothing,
        .scale = scale,
        .ignore = IGNORE,
    };
    struct gpu_grid grid = { .x = (unsigned)rows };
    return NN_LAUNCH(nn, "cross_entropy", grid, args, NN_OUT(dlogits, dlogits ? rows * stride : 0, 2), err);
}
