/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/nn.h"
#include "gpu/kernels/columns.h"
#include "gpu/kernels/cross_entropy.h"
#include "gpu/kernels/elementwise.h"
#include "gpu/kernels/embedding.h"
#include "gpu/kernels/norm.h"
#include "gpu/kernels/random.h"
#include "gpu/kernels/rope.h"
#include <math.h>
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

static int name_place(struct nn *nn, const char *op, struct cairn_error *err)
{
    struct cairn_error inner = *err;
    snprintf(err->msg, sizeof(err->msg), "%s, %s: %s", nn->where, op, inner.msg);
    return -1;
}

static int tell(struct nn *nn, const char *op, const void *out, size_t n, enum gpu_storage storage,
                double flops, double bytes, struct cairn_error *err)
{
    if (!nn->watcher)
        return 0;
    struct nn_event e = { op, nn->where, out, n, storage, flops, bytes };
    return nn->watcher->after(nn->watcher, nn, &e, err);
}

static size_t number_size(const struct nn *nn)
{
    return nn->storage == GPU_F32 ? 4 : 2;
}

/* What an op leaves, for the watcher: n numbers, while it moves `arrays` arrays of that size. */
struct result {
    const void *out;
    size_t n, arrays;
};

static int queue(struct nn *nn, const char *kernel, enum gpu_storage storage, struct gpu_grid grid,
                 const void *args, size_t size, struct result r, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    if (gpu_kernel(nn->g, kernel, storage, &k, err) ||
        gpu_launch(nn->g, nn->stream, k, grid, args, size, err))
        return name_place(nn, kernel, err);
    double width = storage == GPU_F32 ? 4 : 2;
    return tell(nn, kernel, r.out, r.n, storage, 0, (double)r.n * (double)r.arrays * width, err);
}
#define QUEUE(nn, kernel, grid, args, result, err) \
    queue(nn, kernel, (nn)->storage, grid, &(args), sizeof(args), result, err)

static struct gpu_grid over(size_t n)
{
    return (struct gpu_grid){ .x = (unsigned)K_GROUPS(n) };
}

/* ---- linear ---- */

static int gemm(struct nn *nn, const char *op, const struct gemm_args *args, const void *slope_of,
                struct cairn_error *err)
{
    if (slope_of ? blas_gemm_gelu_back(nn->blas, nn->stream, nn->storage, args, slope_of, err)
                 : blas_gemm(nn->blas, nn->stream, nn->storage, args, 1, err))
        return name_place(nn, op, err);
    double m = (double)args->m, n = (double)args->n, k = (double)args->k, width = (double)number_size(nn);
    bool whole = args->c_stride == args->n;
    double results = m * n * ((args->c_f32 ? 4 : width) + (slope_of ? width : 0));
    return tell(nn, op, args->c, whole ? (size_t)(m * n) : 0, args->c_f32 ? GPU_F32 : nn->storage,
                2 * m * n * k, (m * k + k * n) * width + results, err);
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
    return queue(nn, "fold", GPU_F32,
                 (struct gpu_grid){ .x = (unsigned)sets, .y = (unsigned)K_FOLDS(columns) }, &args,
                 sizeof(args), (struct result){ y, sets * columns, 1 }, err);
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
    if (QUEUE(nn, "column_sum", grid, sum, ((struct result){ NULL, rows * columns, 1 }), err))
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
    return QUEUE(nn, n->kind == NN_NORM_RMS ? "rms_norm" : "layer_norm", grid, args,
                 ((struct result){ n->y, n->rows * n->columns, 2 }), err);
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
    struct result r = { NULL, n->rows * n->columns, 2 };
    bool together = db == dw + n->columns;
    if (QUEUE(nn, "norm_backward_w", grid, args, r, err) ||
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
    return QUEUE(nn, kernel, grid, args, ((struct result){ dx, n->rows * n->columns, add ? 4 : 3 }), err);
}

/* ---- attention ---- */

static const void *skip(const struct nn *nn, const void *p, size_t numbers)
{
    return (const char *)p + numbers * number_size(nn);
}

static size_t row_numbers(const struct nn_attention *a)
{
    return (a->heads + 2 * a->kv_heads) * a->size;
}

static struct attention_stride strides(const struct nn_attention *a, size_t row)
{
    return (struct attention_stride){ .sample = (k_i64)(a->tokens * row),
                                      .token = (k_i64)row,
                                      .head = (k_i64)a->size };
}

/* Of one pass; a key is seen by half of the queries. */
static double attention_flops(const struct nn_attention *a)
{
    double keys = (double)(a->tokens + a->past) + (double)a->past;
    return 2.0 * (double)(a->samples * a->heads * a->size * a->tokens) * keys;
}

int nn_attention(struct nn *nn, const struct nn_attention *a, struct cairn_error *err)
{
    size_t row = row_numbers(a), q_size = a->heads * a->size, kv_size = a->kv_heads * a->size;
    const void *first = (const char *)a->qkv - a->past * row * number_size(nn);
    struct attention_args args = {
        .o = a->o,
        .lse = a->lse,
        .q = a->qkv,
        .k = skip(nn, first, q_size),
        .v = skip(nn, first, q_size + kv_size),
        .o_by = strides(a, q_size),
        .q_by = strides(a, row),
        .k_by = strides(a, row),
        .v_by = strides(a, row),
        .heads = (k_i64)a->heads,
        .kv_heads = (k_i64)a->kv_heads,
        .queries = (k_i64)a->tokens,
        .keys = (k_i64)(a->tokens + a->past),
        .size = (k_i64)a->size,
        .causal = 1,
        .causal_shift = (k_i64)a->past,
        .scale = 1.0f / sqrtf((float)a->size),
    };
    if (attention_forward(nn->g, nn->stream, nn->storage, (k_i64)a->samples, &args, err))
        return name_place(nn, "attention", err);
    size_t n = a->samples * a->tokens * q_size;
    return tell(nn, "attention", a->o, n, nn->storage, attention_flops(a),
                4.0 * (double)(n * number_size(nn)), err);
}

int nn_attention_back(struct nn *nn, const struct nn_attention *a, const void *d_o, void *dqkv, float *delta,
                      struct cairn_error *err)
{
    size_t row = row_numbers(a), q_size = a->heads * a->size, kv_size = a->kv_heads * a->size;
    struct attention_stride by = strides(a, row), o_by = strides(a, q_size);
    struct attention_backward_args args = {
        .dq = dqkv,
        .dk = (void *)skip(nn, dqkv, q_size),
        .dv = (void *)skip(nn, dqkv, q_size + kv_size),
        .delta = delta,
        .q = a->qkv,
        .k = skip(nn, a->qkv, q_size),
        .v = skip(nn, a->qkv, q_size + kv_size),
        .o = a->o,
        .d_o = d_o,
        .lse = a->lse,
        .dq_by = by,
        .dk_by = by,
        .dv_by = by,
        .q_by = by,
        .k_by = by,
        .v_by = by,
        .o_by = o_by,
        .d_o_by = o_by,
        .heads = (k_i64)a->heads,
        .kv_heads = (k_i64)a->kv_heads,
        .queries = (k_i64)a->tokens,
        .keys = (k_i64)a->tokens,
        .size = (k_i64)a->size,
        .causal = 1,
        .scale = 1.0f / sqrtf((float)a->size),
    };
    if (attention_backward(nn->g, nn->stream, nn->storage, (k_i64)a->samples, &args, err))
        return name_place(nn, "attention_backward", err);
    size_t n = a->samples * a->tokens * row;
    return tell(nn, "attention_backward", dqkv, n, nn->storage, 2.5 * attention_flops(a),
                3.0 * (double)(n * number_size(nn)), err);
}

int nn_rope(struct nn *nn, const struct nn_attention *a, void *qkv, const float *cos_, const float *sin_,
            bool back, struct cairn_error *err)
{
    size_t row = row_numbers(a), tokens = a->samples * a->tokens, pairs = a->size / 2;
    size_t heads[2] = { a->heads, a->kv_heads };
    void *part[2] = { qkv, (void *)skip(nn, qkv, a->heads * a->size) };
    for (int i = 0; i < 2; i++) {
        struct rope_args args = {
            .y = part[i],
            .x = part[i],
            .cos_ = cos_,
            .sin_ = sin_,
            .rows = (k_i64)(tokens * heads[i]),
            .columns = (k_i64)a->size,
            .pairs = (k_i64)pairs,
            .rows_per_position = (k_i64)heads[i],
            .stride = (k_i64)row,
            .positions = (k_i64)a->tokens,
            .back = back,
        };
        struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(args.rows, args.pairs) };
        if (QUEUE(nn, "rope_halves", grid, args, ((struct result){ NULL, tokens * heads[i] * a->size, 2 }),
                  err))
            return -1;
    }
    return 0;
}

/* ---- elementwise ---- */

int nn_gelu(struct nn *nn, void *y, const void *x, size_t n, struct cairn_error *err)
{
    struct map_args args = { .y = y, .x = x, .n = (k_i64)n };
    return QUEUE(nn, "gelu", over(n), args, ((struct result){ y, n, 2 }), err);
}

int nn_gelu_back(struct nn *nn, void *dx, const void *dy, const void *x, size_t n, struct cairn_error *err)
{
    struct map_backward_args args = { .dx = dx, .dy = dy, .x = x, .n = (k_i64)n };
    return QUEUE(nn, "gelu_backward", over(n), args, ((struct result){ dx, n, 3 }), err);
}

int nn_swiglu(struct nn *nn, void *y, const void *gate, const void *up, size_t n, struct cairn_error *err)
{
    struct swiglu_args args = { .y = y, .gate = gate, .up = up, .n = (k_i64)n };
    return QUEUE(nn, "swiglu", over(n), args, ((struct result){ y, n, 3 }), err);
}

int nn_swiglu_back(struct nn *nn, void *dgate, void *dup, const void *dy, const void *gate, const void *up,
                   size_t n, struct cairn_error *err)
{
    struct swiglu_backward_args args = {
        .dgate = dgate, .dup = dup, .dy = dy, .gate = gate, .up = up, .n = (k_i64)n
    };
    return QUEUE(nn, "swiglu_backward", over(n), args, ((struct result){ dgate, n, 5 }), err);
}

int nn_add(struct nn *nn, void *y, const void *x, const void *z, size_t n, struct cairn_error *err)
{
    struct combine_args args = { .y = y, .x = x, .z = z, .n = (k_i64)n, .factor = 1 };
    return QUEUE(nn, "add", over(n), args, ((struct result){ y, n, 3 }), err);
}

int nn_dropout(struct nn *nn, void *y, const void *x, size_t n, const struct nn_drop *d,
               struct cairn_error *err)
{
    if (d->rate == 0)
        return y == x ? 0 : gpu_copy(nn->g, nn->stream, y, x, n * number_size(nn), err);
    struct dropout_args args = {
        .y = y,
        .x = x,
        .n = (k_i64)n,
        .seed = d->seed,
        .stream = d->stream,
        .threshold = (k_u32)((double)d->rate * 4294967296.0),
        .scale = 1 / (1 - d->rate),
    };
    return QUEUE(nn, "dropout", over(n), args, ((struct result){ y, n, 2 }), err);
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
    return QUEUE(nn, "embedding", grid, args, ((struct result){ y, rows * columns, 2 }), err);
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
    return QUEUE(nn, "embedding_backward", grid, args, ((struct result){ NULL, rows * columns, 1 }), err);
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
    return QUEUE(nn, "cross_entropy", grid, args,
                 ((struct result){ dlogits, dlogits ? rows * stride : 0, 2 }), err);
}
