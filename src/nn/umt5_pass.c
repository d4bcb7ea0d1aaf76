/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/umt5_inside.h"

#define EPSILON 1e-6f

/* The product of an MLP's two halves exceeds f16 in this model. */
float umt5_ffn_factor(enum gpu_storage storage)
{
    return storage == GPU_F16 ? 1.0f / 32 : 1;
}

static int matrix(struct umt5 *u, size_t slot, enum umt5_param p, void **out, struct cairn_error *err)
{
    return weights_matrix(&u->weights, u->nn->stream, &u->params.list[u->slots[slot][p]], out, err);
}

static int linear(struct umt5 *u, size_t slot, enum umt5_param p, const void *x, void *y, size_t rows,
                  struct cairn_error *err)
{
    const struct param *param = &u->params.list[u->slots[slot][p]];
    struct nn_linear l = { .x = x, .y = y, .rows = rows, .in = param->columns, .out = param->rows };
    void *w;
    if (matrix(u, slot, p, &w, err))
        return -1;
    l.w = w;
    return nn_linear(u->nn, &l, err);
}

static int norm(struct umt5 *u, size_t param, size_t rows, struct cairn_error *err)
{
    struct nn_norm n = {
        .kind = NN_NORM_RMS,
        .x = u->work.x,
        .y = u->work.norm,
        .w = weights_vector(&u->weights, &u->params.list[param]),
        .rstd = u->work.rstd,
        .rows = rows,
        .columns = u->file.info.dim,
        .epsilon = EPSILON,
        .wide = true,
    };
    return nn_norm(u->nn, &n, err);
}

/* x += factor z. */
static int add(struct umt5 *u, const float *factor, size_t rows, struct cairn_error *err)
{
    struct nn_gate g = {
        .y = u->work.x,
        .x = u->work.x,
        .z = u->work.inner,
        .gate = factor,
        .rows = rows,
        .columns = u->file.info.dim,
        .wide = true,
    };
    return nn_gate(u->nn, &g, err);
}

static int attend(struct umt5 *u, size_t layer, const struct umt5_run *run, struct cairn_error *err)
{
    const struct umt5_info *s = &u->file.info;
    size_t size = s->attention_dim / s->heads, elem = storage_size(u->nn->storage);
    size_t row = 3 * s->attention_dim, table = s->heads * (2 * UMT5_SPAN + 1);
    char *q = (char *)u->work.inner + run->first * row * elem;
    char *o = (char *)u->work.norm + run->first * s->attention_dim * elem;
    struct nn_attention a = {
        .q = nn_heads_in_rows(q, run->tokens, row, size),
        .k = nn_heads_in_rows(q + s->attention_dim * elem, run->tokens, row, size),
        .v = nn_heads_in_rows(q + 2 * s->attention_dim * elem, run->tokens, row, size),
        .o = nn_heads_in_rows(o, run->tokens, s->attention_dim, size),
        .lse = u->work.lse,
        .samples = run->samples,
        .queries = run->tokens,
        .keys = run->tokens,
        .heads = s->heads,
        .kv_heads = s->heads,
        .size = size,
        .scale = 1,
        .bias = weights_vector(&u->weights, &u->params.list[u->bias]) + layer * table,
        .bias_span = UMT5_SPAN,
    };
    return nn_attention(u->nn, &a, err);
}

int umt5_layer(struct umt5 *u, size_t layer, size_t slot, const struct umt5_run *runs, size_t n, size_t rows,
               struct cairn_error *err)
{
    struct nn *nn = u->nn;
    const struct umt5_work *w = &u->work;
    float factor = umt5_ffn_factor(nn->storage);
    const float *back = factor < 1 ? weights_vector(&u->weights, &u->params.list[u->gate]) : NULL;
    struct nn_geglu geglu = {
        .y = w->act, .x = w->inner, .rows = rows, .columns = u->file.info.ffn, .factor = factor
    };
    nn_at(nn, "layer %zu, attention", layer);
    if (norm(u, u->norms[layer][0], rows, err) || linear(u, slot, UMT5_QKV, w->norm, w->inner, rows, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (attend(u, layer, &runs[i], err))
            return -1;
    if (linear(u, slot, UMT5_OUT, w->norm, w->inner, rows, err) || add(u, NULL, rows, err))
        return -1;
    nn_at(nn, "layer %zu, ffn", layer);
    return norm(u, u->norms[layer][1], rows, err) ||
                   linear(u, slot, UMT5_GATE_UP, w->norm, w->inner, rows, err) || nn_geglu(nn, &geglu, err) ||
                   linear(u, slot, UMT5_FFN_OUT, w->act, w->inner, rows, err) || add(u, back, rows, err)
               ? -1
               : 0;
}

int umt5_last_norm(struct umt5 *u, size_t rows, struct cairn_error *err)
{
    nn_at(u->nn, "last norm");
    return norm(u, u->norm, rows, err);
}
