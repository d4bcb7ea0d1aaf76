/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/bench_rows.h"

#include "gpu/attention.h"
#include "gpu/kernels/columns.h"
#include "gpu/kernels/elementwise.h"
#include "gpu/kernels/norm.h"
#include "gpu/kernels/optim.h"
#include "gpu/kernels/cross_entropy.h"
#include "gpu/kernels/softmax.h"
#include "gpu/optim8.h"
#include <string.h>

static int launch(struct bench *b, const char *name, struct gpu_grid grid, const void *args, size_t size,
                  struct cairn_error *err)
{
    const struct gpu_kernel *k;
    return gpu_kernel(b->g, name, b->storage, &k, err) || gpu_launch(b->g, NULL, k, grid, args, size, err)
               ? -1
               : 0;
}

/* ---- copies ---- */

static void set_bytes(struct bench_amount *a, double factor, size_t n)
{
    a->bytes = factor * (double)n;
    a->sizes[0] = (long long)n;
}

static int copy_within(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                       struct cairn_error *err)
{
    (void)r;
    set_bytes(a, 2, b->bytes);
    return gpu_copy(b->g, NULL, b->device[1], b->device[0], b->bytes, err);
}

static int copy_kernel(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                       struct cairn_error *err)
{
    size_t n = b->bytes / bench_number_size(b->storage);
    struct map_args args = { .y = b->device[1], .x = b->device[0], .n = (k_i64)n };
    (void)r;
    set_bytes(a, 2, b->bytes);
    a->sizes[0] = (long long)n;
    return launch(b, "copy", (struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }, &args, sizeof(args), err);
}

static int upload_pageable(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                           struct cairn_error *err)
{
    (void)r;
    set_bytes(a, 1, b->bytes);
    return gpu_upload(b->g, NULL, b->device[0], b->pageable, b->bytes, err);
}

static int upload_staged(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                         struct cairn_error *err)
{
    (void)r;
    set_bytes(a, 1, b->bytes);
    return gpu_upload(b->g, NULL, b->device[0], b->staging, b->bytes, err);
}

static int download_pageable(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                             struct cairn_error *err)
{
    (void)r;
    set_bytes(a, 1, b->bytes);
    return gpu_download(b->g, NULL, b->pageable, b->device[0], b->bytes, err);
}

static int download_staged(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                           struct cairn_error *err)
{
    (void)r;
    set_bytes(a, 1, b->bytes);
    return gpu_download(b->g, NULL, b->staging, b->device[0], b->bytes, err);
}

/* ---- rows of a matrix ---- */

enum { NORM_COLUMNS = 4096, NORM_PARTS = 128 };

/* As many rows as fit in f32, for every format; each moves `tensors` matrices. */
static k_i64 set_matrix(const struct bench *b, struct bench_amount *a, k_i64 columns, double tensors)
{
    k_i64 rows = (k_i64)(b->bytes / 4) / columns;
    a->sizes[0] = rows, a->sizes[1] = columns;
    a->bytes = tensors * (double)(rows * columns) * (double)bench_number_size(b->storage);
    return rows;
}

static struct gpu_grid whole_rows(k_i64 rows)
{
    return (struct gpu_grid){ .x = (unsigned)K_WHOLE_GROUPS(rows, NORM_COLUMNS) };
}

static int norm(struct bench *b, const struct bench_row *r, struct bench_amount *a, struct cairn_error *err)
{
    k_i64 rows = set_matrix(b, a, NORM_COLUMNS, 2);
    struct norm_args args = { .y = b->device[2],
                              .mean = b->device[3],
                              .rstd = b->device[4],
                              .x = b->device[0],
                              .w = b->device[5],
                              .b = b->device[6],
                              .rows = rows,
                              .columns = NORM_COLUMNS,
                              .epsilon = 1e-5f };
    struct gpu_grid grid = { .x = (unsigned)K_NORM_GROUPS(rows, NORM_COLUMNS) };
    return launch(b, r->by, grid, &args, sizeof(args), err);
}

static int fill_weights(struct bench *b, struct cairn_error *err)
{
    for (int i = 3; i < 7; i++)
        if (bench_fill(b, i, GPU_F32, err))
            return -1;
    return 0;
}

static int fold(struct bench *b, float *y, const float *sums, struct cairn_error *err)
{
    struct fold_args args = { .y = y, .sums = sums, .parts = NORM_PARTS, .columns = NORM_COLUMNS };
    return launch(b, "fold", (struct gpu_grid){ 1, K_FOLDS(NORM_COLUMNS), 1 }, &args, sizeof(args), err);
}

/* All gradients: of x, and of the weights in two passes. */
static int norm_backward(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                         struct cairn_error *err)
{
    bool centred = !strcmp(r->by, "layer_norm_backward");
    k_i64 rows = set_matrix(b, a, NORM_COLUMNS, 3);
    float *dw = b->device[7], *db = centred ? b->device[8] : NULL;
    struct norm_backward_args args = { .dx = b->device[2],
                                       .dy = b->device[1],
                                       .x = b->device[0],
                                       .w = b->device[5],
                                       .mean = b->device[3],
                                       .rstd = b->device[4],
                                       .rows = rows,
                                       .columns = NORM_COLUMNS };
    struct norm_weights_args weights = { .dw = dw,
                                         .db = db,
                                         .dy = b->device[1],
                                         .x = b->device[0],
                                         .mean = centred ? b->device[3] : NULL,
                                         .rstd = b->device[4],
                                         .rows = rows,
                                         .columns = NORM_COLUMNS,
                                         .rows_per_part = (rows + NORM_PARTS - 1) / NORM_PARTS };
    struct gpu_grid parts = { NORM_PARTS, K_TILES(NORM_COLUMNS), 1 };
    if (launch(b, r->by, whole_rows(rows), &args, sizeof(args), err) ||
        launch(b, "norm_backward_w", parts, &weights, sizeof(weights), err) || fold(b, b->device[9], dw, err))
        return -1;
    return db ? fold(b, b->device[9], db, err) : 0;
}

static int softmax(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                   struct cairn_error *err)
{
    k_i64 rows = set_matrix(b, a, NORM_COLUMNS, 2);
    struct softmax_args args = {
        .y = b->device[1], .x = b->device[0], .rows = rows, .columns = NORM_COLUMNS, .scale = 1
    };
    return launch(b, r->by, whole_rows(rows), &args, sizeof(args), err);
}

static int softmax_backward(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                            struct cairn_error *err)
{
    k_i64 rows = set_matrix(b, a, NORM_COLUMNS, 3);
    struct softmax_backward_args args = { .dx = b->device[2],
                                          .dy = b->device[1],
                                          .y = b->device[0],
                                          .rows = rows,
                                          .columns = NORM_COLUMNS,
                                          .scale = 1 };
    return launch(b, r->by, whole_rows(rows), &args, sizeof(args), err);
}

/* GPT-2's vocabulary, padded for the matmul. */
enum { VOCABULARY = 50257, VOCABULARY_STRIDE = 50304, TARGETS = 1 << 14 };

static int fill_targets(struct bench *b, struct cairn_error *err)
{
    static int targets[TARGETS];
    unsigned state = 1;
    for (int i = 0; i < TARGETS; i++) {
        state = state * 1664525u + 1013904223u;
        targets[i] = (int)(state >> 8) % VOCABULARY;
    }
    return gpu_upload(b->g, NULL, b->device[2], targets, sizeof(targets), err);
}

/* The loss and its gradient in one kernel. */
static int cross_entropy(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                         struct cairn_error *err)
{
    k_i64 rows = (k_i64)(b->bytes / 4) / VOCABULARY_STRIDE;
    struct cross_entropy_args args = { .loss = b->device[3],
                                       .dlogits = b->device[1],
                                       .logits = b->device[0],
                                       .targets = b->device[2],
                                       .rows = rows,
                                       .columns = VOCABULARY,
                                       .stride = VOCABULARY_STRIDE,
                                       .scale = 1,
                                       .ignore = -1 };
    a->sizes[0] = rows, a->sizes[1] = VOCABULARY;
    a->bytes = 2.0 * (double)(rows * VOCABULARY) * (double)bench_number_size(b->storage);
    return launch(b, r->by, (struct gpu_grid){ .x = (unsigned)rows }, &args, sizeof(args), err);
}

/* ---- steps of optimizers ---- */

/* w 0, g 1, master 2, and the state, which starts at 0 as in training. */
static int clear_state(struct bench *b, struct cairn_error *err)
{
    if (bench_fill(b, 2, GPU_F32, err))
        return -1;
    for (int i = 3; i < 7; i++)
        if (gpu_clear(b->g, NULL, b->device[i], b->bytes, err))
            return -1;
    return 0;
}

static int clear_state8(struct bench *b, struct cairn_error *err)
{
    float tables[OPTIM8_TABLES];
    optim8_tables(tables);
    /* The buffer lives until this function returns: the copy must be done by then. */
    return clear_state(b, err) || gpu_upload(b->g, NULL, b->device[7], tables, sizeof(tables), err) ||
                   gpu_wait(b->g, NULL, err)
               ? -1
               : 0;
}

/* 16-bit weights have a master copy.  `state` is how many bytes of it a number has, each read and written. */
static struct optim_weights weights_of(const struct bench *b, struct bench_amount *a, double state)
{
    size_t n = b->bytes / 4, size = bench_number_size(b->storage);
    bool master = b->storage != GPU_F32;
    a->sizes[0] = (long long)n;
    a->bytes = (double)n * ((double)size + (double)(master ? 8 + size : 2 * size) + 2 * state);
    return (struct optim_weights){ .w = b->device[0],
                                   .master = master ? b->device[2] : NULL,
                                   .g = b->device[1],
                                   .n = (k_i64)n,
                                   .rate = 1e-4f,
                                   .decay = 0.1f };
}

#define ADAM                                                                                               \
    .beta1 = 0.9f, .beta2 = 0.999f, .rest1 = 0.1f, .rest2 = 0.001f, .epsilon = 1e-8f, .correction1 = 0.1f, \
    .correction2 = 0.001f

static int adamw(struct bench *b, const struct bench_row *r, struct bench_amount *a, struct cairn_error *err)
{
    bool lion = !strcmp(r->by, "lion");
    struct adamw_args args = {
        .to = weights_of(b, a, lion ? 4 : 8), .m = b->device[3], .v = b->device[4], ADAM
    };
    return launch(b, r->by, (struct gpu_grid){ .x = (unsigned)K_GROUPS(args.to.n) }, &args, sizeof(args),
                  err);
}

static int adamw8(struct bench *b, const struct bench_row *r, struct bench_amount *a, struct cairn_error *err)
{
    struct adamw8_args args = { .to = weights_of(b, a, 2),
                                .m = b->device[3],
                                .v = b->device[4],
                                .m_max = b->device[5],
                                .v_max = b->device[6],
                                .tables = b->device[7],
                                ADAM };
    unsigned blocks = (unsigned)((args.to.n + OPTIM8_BLOCK - 1) / OPTIM8_BLOCK);
    return launch(b, r->by, (struct gpu_grid){ .x = blocks }, &args, sizeof(args), err);
}

/* ---- matrices ---- */

static int multiply(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                    const struct gemm_args *args, struct cairn_error *err)
{
    a->flops = 2.0 * (double)args->m * (double)args->n * (double)args->k;
    a->sizes[0] = args->m, a->sizes[1] = args->n, a->sizes[2] = args->k;
    if (blas_force(b->blas, r->by, err) || blas_gemm(b->blas, NULL, b->storage, args, 1, err))
        return -1;
    a->way = blas_last(b->blas);
    return 0;
}

static int gemm(struct bench *b, const struct bench_row *r, struct bench_amount *a, struct cairn_error *err)
{
    k_i64 n = bench_scale(b, 8192, 1024);
    while ((size_t)(n * n) * 4 > b->bytes)
        n /= 2;
    struct gemm_args args = { .c = b->device[2],
                              .a = b->device[0],
                              .b = b->device[1],
                              .m = n,
                              .n = n,
                              .k = n,
                              .a_stride = n,
                              .b_stride = n,
                              .c_stride = n,
                              .alpha = 1,
                              .a_transposed = r->a_transposed,
                              .b_transposed = r->b_transposed };
    return multiply(b, r, a, &args, err);
}

/* The first layer of GPT-2's MLP: x Wᵀ + bias and GELU, both sides of which backward needs. */
static int gemm_gelu(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                     struct cairn_error *err)
{
    enum { IN = 768, OUT = 3072 };
    k_i64 rows = bench_scale(b, 32768, 512); /* the weights fit into the smallest buffer, of 16 MiB */
    while ((size_t)(rows * OUT) * 4 > b->bytes)
        rows /= 2;
    struct gemm_args args = { .c = b->device[2],
                              .before = b->device[3],
                              .a = b->device[0],
                              .b = b->device[1],
                              .bias = b->device[4],
                              .m = rows,
                              .n = OUT,
                              .k = IN,
                              .a_stride = IN,
                              .b_stride = IN,
                              .c_stride = OUT,
                              .alpha = 1,
                              .b_transposed = 1,
                              .gelu = 1 };
    return multiply(b, r, a, &args, err);
}

static int fill_bias(struct bench *b, struct cairn_error *err)
{
    return bench_fill(b, 4, GPU_F32, err);
}

static struct attention_args attention_args_of(const struct bench *b, const struct bench_row *r,
                                               k_i64 *samples)
{
    bool causal = r->causal;
    k_i64 heads = bench_is_cpu(b) ? 4 : causal ? 12 : 40, tokens = bench_scale(b, causal ? 1024 : 7800, 512);
    k_i64 size = bench_is_cpu(b) || causal ? 64 : 128;
    *samples = bench_is_cpu(b) || !causal ? 1 : 32;
    while ((size_t)(*samples * heads * tokens * size) * 4 > b->bytes)
        tokens /= 2;
    k_i64 keys = r->keys && r->keys < tokens ? r->keys : tokens;
    struct attention_stride by = { tokens * heads * size, heads * size, size };
    return (struct attention_args){ .o = b->device[4],
                                    .lse = b->device[5],
                                    .q = b->device[0],
                                    .k = b->device[1],
                                    .v = b->device[2],
                                    .o_by = by,
                                    .q_by = by,
                                    .k_by = by,
                                    .v_by = by,
                                    .heads = heads,
                                    .kv_heads = heads,
                                    .queries = tokens,
                                    .keys = keys,
                                    .size = size,
                                    .causal = causal,
                                    .scale = size == 64 ? 0.125f : 0.08838834764f };
}

/* FLOPs of a matmul of the scores' size; causal attention computes half of the scores. */
static void set_attention(struct bench_amount *a, const struct attention_args *args, k_i64 samples,
                          int products)
{
    a->sizes[0] = samples, a->sizes[1] = args->heads, a->sizes[2] = args->queries, a->sizes[3] = args->size;
    a->flops = (args->causal ? 1.0 : 2.0) * products *
               (double)(samples * args->heads * args->queries * args->keys * args->size);
}

static int attention(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                     struct cairn_error *err)
{
    k_i64 samples;
    struct attention_args args = attention_args_of(b, r, &samples);
    set_attention(a, &args, samples, 2);
    return attention_forward(b->g, NULL, b->storage, samples, &args, err);
}

/* Backward has five matmuls: the scores again, and the gradients of v, of the scores, of q and of k. */
static int attention_both(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                          struct cairn_error *err)
{
    k_i64 samples;
    struct attention_args args = attention_args_of(b, r, &samples);
    struct attention_backward_args back = { .dq = b->device[6],
                                            .dk = b->device[7],
                                            .dv = b->device[8],
                                            .delta = b->device[9],
                                            .q = args.q,
                                            .k = args.k,
                                            .v = args.v,
                                            .o = args.o,
                                            .d_o = b->device[3],
                                            .lse = args.lse,
                                            .dq_by = args.q_by,
                                            .dk_by = args.k_by,
                                            .dv_by = args.v_by,
                                            .q_by = args.q_by,
                                            .k_by = args.k_by,
                                            .v_by = args.v_by,
                                            .o_by = args.o_by,
                                            .d_o_by = args.o_by,
                                            .heads = args.heads,
                                            .kv_heads = args.heads,
                                            .queries = args.queries,
                                            .keys = args.keys,
                                            .size = args.size,
                                            .causal = args.causal,
                                            .scale = args.scale };
    set_attention(a, &args, samples, 7);
    return attention_forward(b->g, NULL, b->storage, samples, &args, err) ||
                   attention_backward(b->g, NULL, b->storage, samples, &back, err)
               ? -1
               : 0;
}

#define COPY(kind, formats) .group = "copy", .inputs = 2, .ceiling = kind, .has_formats = formats
#define MOVES(of, in) .group = of, .inputs = in, .ceiling = BY_COPY, .has_formats = true
#define MATRICES(of, in) .group = of, .inputs = in, .ceiling = BY_MATRIX, .has_formats = true
#define CONV MATRICES("conv", 4), .once = bench_conv, .prepare = fill_bias
const struct bench_row bench_rows[] = {
    { COPY(BY_COPY, false), .name = "on the device", .once = copy_within },
    { COPY(BY_COPY, true), .name = "copy kernel", .once = copy_kernel },
    { COPY(BY_TRANSFER, false), .name = "to the device, pageable", .once = upload_pageable },
    { COPY(BY_TRANSFER, false), .name = "to the device, staged", .once = upload_staged },
    { COPY(BY_TRANSFER, false), .name = "from the device, pageable", .once = download_pageable },
    { COPY(BY_TRANSFER, false), .name = "from the device, staged", .once = download_staged },
    { MOVES("norm", 1), .name = "layer_norm", .once = norm, .by = "layer_norm", .prepare = fill_weights },
    { MOVES("norm", 2), .name = "layer_norm backward", .once = norm_backward, .by = "layer_norm_backward",
      .prepare = fill_weights },
    { MOVES("norm", 1), .name = "rms_norm", .once = norm, .by = "rms_norm", .prepare = fill_weights },
    { MOVES("norm", 2), .name = "rms_norm backward", .once = norm_backward, .by = "rms_norm_backward",
      .prepare = fill_weights },
    { MOVES("norm", 1), .name = "norm_silu, 96 columns", .once = bench_norm_silu, .keys = 96,
      .prepare = fill_bias },
    { MOVES("norm", 1), .name = "norm_silu, 384 columns", .once = bench_norm_silu, .keys = 384,
      .prepare = fill_bias },
    { MOVES("softmax", 1), .name = "softmax", .once = softmax, .by = "softmax" },
    { MOVES("softmax", 2), .name = "softmax backward", .once = softmax_backward, .by = "softmax_backward" },
    { MOVES("cross_entropy", 1), .name = "loss and gradient", .once = cross_entropy, .by = "cross_entropy",
      .prepare = fill_targets },
    { MOVES("adamw", 2), .name = "adamw", .once = adamw, .by = "adamw", .prepare = clear_state },
    { MOVES("adamw", 2), .name = "adamw8", .once = adamw8, .by = "adamw8", .prepare = clear_state8 },
    { MOVES("adamw", 2), .name = "lion", .once = adamw, .by = "lion", .prepare = clear_state },
    { MATRICES("gemm", 2), .name = "a b", .once = gemm },
    { MATRICES("gemm", 2), .name = "a bT", .once = gemm, .b_transposed = true },
    { MATRICES("gemm", 2), .name = "aT b", .once = gemm, .a_transposed = true },
    { MATRICES("gemm", 2), .name = "gelu(a bT + bias)", .once = gemm_gelu, .prepare = fill_bias },
    { MATRICES("gemm", 2), .name = "a b, cpu", .once = gemm, .by = "cpu" },
    { MATRICES("gemm", 2), .name = "a b, openblas", .once = gemm, .by = "openblas" },
    { MATRICES("gemm", 2), .name = "a b, cublaslt", .once = gemm, .by = "cublaslt" },
    { MATRICES("gemm", 2), .name = "a b, hipblaslt", .once = gemm, .by = "hipblaslt" },
    { MATRICES("gemm", 2), .name = "a b, rocblas", .once = gemm, .by = "rocblas" },
    { MATRICES("gemm", 2), .name = "a b, gemm_mma", .once = gemm, .by = "gemm_mma" },
    { MATRICES("gemm", 2), .name = "a b, gemm", .once = gemm, .by = "gemm" },
    { MATRICES("attention", 3), .name = "forward", .once = attention },
    { MATRICES("attention", 3), .name = "forward, causal", .once = attention, .causal = true },
    { MATRICES("attention", 3), .name = "forward, 512 keys", .once = attention, .keys = 512 },
    { MATRICES("attention", 4), .name = "with backward", .once = attention_both },
    { MATRICES("attention", 4), .name = "with backward, causal", .once = attention_both, .causal = true },
    { MATRICES("attention", 4), .name = "with backward, 512 keys", .once = attention_both, .keys = 512 },
    { CONV, .name = "96", .shape = BENCH_CONV_96 },
    { CONV, .name = "192", .shape = BENCH_CONV_192 },
    { CONV, .name = "384", .shape = BENCH_CONV_384 },
    { CONV, .name = "384, low", .shape = BENCH_CONV_384_LOW },
    { CONV, .name = "160", .shape = BENCH_CONV_160 },
    { CONV, .name = "256", .shape = BENCH_CONV_256 },
    { CONV, .name = "640", .shape = BENCH_CONV_640 },
    { CONV, .name = "1024", .shape = BENCH_CONV_1024 },
    { CONV, .name = "96, halved", .shape = BENCH_CONV_HALVE },
    { CONV, .name = "192 to 96, doubled", .shape = BENCH_CONV_DOUBLE },
    { CONV, .name = "384 to 768, time", .shape = BENCH_CONV_TIME },
    { CONV, .name = "96 to 3", .shape = BENCH_CONV_LAST },
};
const size_t n_bench_rows = ARRAY_LEN(bench_rows);
