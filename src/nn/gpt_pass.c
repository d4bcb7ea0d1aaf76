/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/gpt_inside.h"
#include <assert.h>
#include <stdlib.h>

/* ---- forward ---- */

/* Which tokens a pass goes over. */
struct span {
    size_t samples, tokens, past;
    const struct gpt_pass *pass; /* NULL: without dropout */
};

static size_t span_rows(const struct span *s)
{
    return s->samples * s->tokens;
}

/* Row `past` of a tensor of rows. */
static void *from_row(const struct gpt_work *r, void *p, size_t row, size_t columns)
{
    return p ? (char *)p + row * columns * storage_size(r->m->nn->storage) : NULL;
}

/* Streams of dropout: one for each pass and place. */
static struct nn_drop drop_at(const struct gpt_work *r, const struct span *s, size_t layer, int place,
                              float rate)
{
    enum { PLACES = 16 };
    if (!s->pass || !s->pass->learn)
        return (struct nn_drop){ 0 };
    uint64_t stream = (s->pass->stream * (r->m->shape.layers + 1) + layer) * PLACES + (uint64_t)place;
    return (struct nn_drop){ .rate = rate, .seed = s->pass->seed, .stream = stream };
}
enum { DROP_LORA, DROP_ATTENTION = GPT_MATRICES, DROP_MLP, DROP_EMBEDDING };

static float *bias_of(const struct gpt *m, const struct gpt_linear *l)
{
    return m->shape.bias ? weights_vector(&m->weights, &m->params.list[l->b]) : NULL;
}

/* y = x wᵀ + bias [+ residual], with GELU where `before` is given. */
static int linear(const struct gpt_work *r, const struct span *s, size_t layer, enum gpt_matrix which,
                  const void *x, void *y, void *before, const void *residual, struct cairn_error *err)
{
    const struct gpt *m = r->m;
    const struct gpt_linear *l = &m->blocks[layer].linear[which];
    bool gelu_after = before && l->lora.n;
    struct nn_linear args = {
        .x = x,
        .y = gelu_after ? before : y,
        .before = gelu_after ? NULL : before,
        .bias = bias_of(m, l),
        .residual = residual,
        .rows = span_rows(s),
        .in = l->in,
        .out = l->out,
    };
    struct nn_drop drop = drop_at(r, s, layer, DROP_LORA + which, m->lora.dropout);
    struct lora_call call = { &m->lora, &l->lora, &r->lora, &drop, x, args.rows, l->in, l->out };
    void *w;
    if (weights_matrix(&m->weights, m->nn->stream, &m->params.list[l->w], &w, err))
        return -1;
    args.w = w;
    if (nn_linear(m->nn, &args, err) || lora_forward(m->nn, &call, args.y, err))
        return -1;
    return gelu_after ? nn_gelu(m->nn, y, before, args.rows * l->out, err) : 0;
}

/* y = x + what the block adds through a matrix. */
static int add_through(const struct gpt_work *r, const struct span *s, size_t layer, enum gpt_matrix which,
                       int place, const void *from, const void *x, void *y, struct cairn_error *err)
{
    struct nn_drop drop = drop_at(r, s, layer, place, r->m->shape.dropout);
    size_t n = span_rows(s) * r->m->shape.width;
    if (drop.rate == 0)
        return linear(r, s, layer, which, from, y, NULL, x, err);
    return linear(r, s, layer, which, from, r->branch, NULL, NULL, err) ||
                   nn_dropout(r->m->nn, r->branch, r->branch, n, &drop, err) ||
                   nn_add(r->m->nn, y, x, r->branch, n, err)
               ? -1
               : 0;
}

static struct nn_norm norm_args(const struct gpt *m, const struct gpt_norm *n, const void *x, void *y,
                                float *mean, float *rstd, size_t rows)
{
    bool has_bias = m->shape.bias && m->shape.norm == NN_NORM_LAYER;
    return (struct nn_norm){
        .kind = m->shape.norm,
        .x = x,
        .y = y,
        .w = weights_vector(&m->weights, &m->params.list[n->w]),
        .b = has_bias ? weights_vector(&m->weights, &m->params.list[n->b]) : NULL,
        .mean = mean,
        .rstd = rstd,
        .rows = rows,
        .columns = m->shape.width,
        .epsilon = m->shape.norm_epsilon,
    };
}

static struct nn_norm block_norm(const struct gpt_work *r, const struct span *s, size_t layer, int which)
{
    struct kept *k = &r->kept[layer];
    return norm_args(r->m, &r->m->blocks[layer].norm[which], which ? k->middle : r->x[layer], k->norm[which],
                     k->mean[which], k->rstd[which], span_rows(s));
}

/* q, k and v, side by side in rows: the heads of q, those of k, those of v. */
static void split_qkv(const struct gpt_work *r, const struct span *s, void *qkv, struct nn_heads out[3])
{
    const struct gpt_shape *shape = &r->m->shape;
    size_t size = gpt_head_size(shape), row = gpt_qkv_rows(shape), elem = storage_size(r->m->nn->storage);
    const size_t first[3] = { 0, shape->heads * size, (shape->heads + shape->kv_heads) * size };
    for (int i = 0; i < 3; i++)
        out[i] = nn_heads_in_rows((char *)qkv + first[i] * elem, s->tokens, row, size);
}

/* The queries of this span; keys and values from the first token on. */
static struct nn_attention attention_of(const struct gpt_work *r, const struct span *s, size_t layer)
{
    const struct gpt_shape *shape = &r->m->shape;
    size_t size = gpt_head_size(shape);
    struct nn_heads heads[3];
    split_qkv(r, s, r->kept[layer].qkv, heads);
    heads[0].at = from_row(r, heads[0].at, s->past, gpt_qkv_rows(shape));
    return (struct nn_attention){
        .q = heads[0],
        .k = heads[1],
        .v = heads[2],
        .o = nn_heads_in_rows(r->kept[layer].attention, s->tokens, shape->heads * size, size),
        .lse = r->kept[layer].lse,
        .samples = s->samples,
        .queries = s->tokens,
        .keys = s->past + s->tokens,
        .heads = shape->heads,
        .kv_heads = shape->kv_heads,
        .size = size,
        .causal = true,
        .past = s->past,
    };
}

/* Rotates q and k of the span's tokens, or their gradients. */
static int rope(const struct gpt_work *r, const struct span *s, void *qkv, bool back, struct cairn_error *err)
{
    const struct gpt_shape *shape = &r->m->shape;
    const size_t heads[2] = { shape->heads, shape->kv_heads };
    size_t size = gpt_head_size(shape), at = s->past * (size / 2);
    struct nn_heads parts[3];
    split_qkv(r, s, qkv, parts);
    for (int i = 0; i < 2 && shape->rope; i++) {
        struct nn_rope args = {
            .x = parts[i],
            .samples = s->samples,
            .tokens = s->tokens,
            .heads = heads[i],
            .size = size,
            .cos_ = r->m->rope_cos + at,
            .sin_ = r->m->rope_sin + at,
            .back = back,
        };
        if (nn_rope(r->m->nn, &args, err))
            return -1;
    }
    return 0;
}

static int mlp(const struct gpt_work *r, const struct span *s, size_t layer, struct cairn_error *err)
{
    const struct kept *k = &r->kept[layer];
    if (!r->m->shape.swiglu)
        return linear(r, s, layer, GPT_FC, k->norm[1], k->act, k->fc, NULL, err);
    return linear(r, s, layer, GPT_FC, k->norm[1], k->fc, NULL, NULL, err) ||
                   linear(r, s, layer, GPT_UP, k->norm[1], k->up, NULL, NULL, err) ||
                   nn_swiglu(r->m->nn, k->act, k->fc, k->up, span_rows(s) * r->m->shape.ffn, err)
               ? -1
               : 0;
}

/* From x[layer] to `middle`, to what goes into the last matrix. */
static int block_inside(const struct gpt_work *r, const struct span *s, size_t layer, struct cairn_error *err)
{
    const struct kept *k = &r->kept[layer];
    struct nn *nn = r->m->nn;
    struct nn_norm first = block_norm(r, s, layer, 0), second = block_norm(r, s, layer, 1);
    struct nn_attention a = attention_of(r, s, layer);
    nn_at(nn, "h.%zu.attn", layer);
    if (nn_norm(nn, &first, err) || linear(r, s, layer, GPT_QKV, k->norm[0], a.q.at, NULL, NULL, err) ||
        rope(r, s, a.q.at, false, err) || nn_attention(nn, &a, err) ||
        add_through(r, s, layer, GPT_PROJ, DROP_ATTENTION, k->attention, r->x[layer], k->middle, err))
        return -1;
    nn_at(nn, "h.%zu.mlp", layer);
    return nn_norm(nn, &second, err) || mlp(r, s, layer, err) ? -1 : 0;
}

static int blocks_forward(const struct gpt_work *r, const struct span *s, struct cairn_error *err)
{
    const struct weights *w = &r->m->weights;
    struct gpu_stream *stream = r->m->nn->stream;
    for (size_t i = 0, last = r->m->shape.layers - 1; i <= last; i++)
        if (weights_need(w, stream, i, i < last ? i + 1 : i, err) || block_inside(r, s, i, err) ||
            add_through(r, s, i, GPT_DOWN, DROP_MLP, r->kept[i].act, r->kept[i].middle, r->x[i + 1], err) ||
            weights_passed(w, stream, i, err))
            return -1;
    return 0;
}

static void *table(const struct gpt *m, size_t index)
{
    struct cairn_error none; /* nothing is queued for a table */
    void *p = NULL;
    weights_matrix(&m->weights, NULL, &m->params.list[index], &p, &none);
    return p;
}

static int embed(const struct gpt_work *r, const struct span *s, const int *ids, struct cairn_error *err)
{
    const struct gpt *m = r->m;
    const void *positions = m->shape.rope ? NULL : from_row(r, table(m, m->wpe), s->past, m->shape.width);
    struct nn_drop drop = drop_at(r, s, m->shape.layers, DROP_EMBEDDING, m->shape.dropout);
    nn_at(m->nn, "embedding");
    if (nn_embedding(m->nn, r->x[0], table(m, m->wte), positions, ids, span_rows(s), m->shape.width,
                     m->shape.vocab, s->tokens, err))
        return -1;
    return nn_dropout(m->nn, r->x[0], r->x[0], span_rows(s) * m->shape.width, &drop, err);
}

static struct nn_norm last_norm(const struct gpt_work *r, size_t rows)
{
    return norm_args(r->m, &r->m->norm, r->x[r->m->shape.layers], r->last, r->last_mean, r->last_rstd, rows);
}

/* The scores of `rows` tokens from `first`. */
static int score(const struct gpt_work *r, size_t first, size_t rows, struct cairn_error *err)
{
    struct nn_linear args = {
        .x = from_row(r, r->last, first, r->m->shape.width),
        .w = table(r->m, r->m->head),
        .y = r->scores,
        .rows = rows,
        .in = r->m->shape.width,
        .out = r->m->vocab_kept,
    };
    nn_at(r->m->nn, "head");
    return nn_linear(r->m->nn, &args, err);
}

static int forward(const struct gpt_work *r, const struct span *s, const int *ids, struct cairn_error *err)
{
    struct nn_norm last = last_norm(r, span_rows(s));
    if (embed(r, s, ids, err) || blocks_forward(r, s, err))
        return -1;
    nn_at(r->m->nn, "ln_f");
    return nn_norm(r->m->nn, &last, err);
}

/* ---- the way back ---- */

static float *grad_vector(const struct gpt *m, const struct weights *grads, size_t index)
{
    return m->lora.rank ? NULL : weights_vector(grads, &m->params.list[index]);
}

static float *grad_matrix(const struct gpt *m, const struct weights *grads, size_t index)
{
    struct cairn_error none;
    void *p = NULL;
    if (!m->lora.rank)
        weights_matrix(grads, NULL, &m->params.list[index], &p, &none);
    return p;
}

/* From dy to the gradients of a matrix, its bias, its pairs and x; behind GELU, of what that was given (`before`, else NULL).
 * What pairs add to the gradient of x has to be there before GELU's slope. */
static int linear_back(const struct gpt_work *r, const struct span *s, size_t layer, enum gpt_matrix which,
                       const void *dy, const void *x, const void *before, void *dx, bool add,
                       const struct weights *grads, struct cairn_error *err)
{
    const struct gpt *m = r->m;
    const struct gpt_linear *l = &m->blocks[layer].linear[which];
    void *w;
    if (weights_matrix(&m->weights, m->nn->stream, &m->params.list[l->w], &w, err))
        return -1;
    struct nn_linear_back args = {
        .dy = dy,
        .x = x,
        .w = w,
        .slope_of = l->lora.n ? NULL : before,
        .dx = dx,
        .dw = grad_matrix(m, grads, l->w),
        .dbias = m->shape.bias ? grad_vector(m, grads, l->b) : NULL,
        .rows = span_rows(s),
        .in = l->in,
        .out = l->out,
        .add = add,
    };
    struct nn_drop drop = drop_at(r, s, layer, DROP_LORA + which, m->lora.dropout);
    struct lora_call call = { &m->lora, &l->lora, &r->lora, &drop, x, args.rows, l->in, l->out };
    if (nn_linear_back(m->nn, &args, err) || lora_back(m->nn, &call, dy, dx, grads, err))
        return -1;
    return before && !args.slope_of ? nn_gelu_back(m->nn, dx, dx, before, args.rows * l->in, err) : 0;
}

static int norm_back(const struct gpt *m, const struct nn_norm *n, const struct gpt_norm *at, const void *dy,
                     void *dx, bool add, const struct weights *grads, struct cairn_error *err)
{
    return nn_norm_back(m->nn, n, dy, dx, add, grad_vector(m, grads, at->w),
                        n->b ? grad_vector(m, grads, at->b) : NULL, err);
}

/* The gradient of what a block added, behind its dropout. */
static int through_dropout(const struct gpt_work *r, const struct span *s, size_t layer, int place,
                           const void **d, struct cairn_error *err)
{
    struct nn_drop drop = drop_at(r, s, layer, place, r->m->shape.dropout);
    *d = r->dx;
    if (drop.rate == 0)
        return 0;
    *d = r->branch;
    return nn_dropout(r->m->nn, r->branch, r->dx, span_rows(s) * r->m->shape.width, &drop, err);
}

static int mlp_back(const struct gpt_work *r, const struct span *s, size_t layer, const struct weights *grads,
                    struct cairn_error *err)
{
    const struct kept *k = &r->kept[layer];
    struct nn *nn = r->m->nn;
    struct nn_norm norm = block_norm(r, s, layer, 1);
    bool swiglu = r->m->shape.swiglu;
    size_t n = span_rows(s) * r->m->shape.ffn;
    const void *d, *before = swiglu ? NULL : k->fc, *d_fc = swiglu ? r->d_wide2 : r->d_wide;
    nn_at(nn, "h.%zu.mlp", layer);
    if (through_dropout(r, s, layer, DROP_MLP, &d, err) ||
        linear_back(r, s, layer, GPT_DOWN, d, k->act, before, r->d_wide, false, grads, err) ||
        (swiglu && nn_swiglu_back(nn, r->d_wide2, r->d_wide, r->d_wide, k->fc, k->up, n, err)) ||
        linear_back(r, s, layer, GPT_FC, d_fc, k->norm[1], NULL, r->d_narrow, false, grads, err) ||
        (swiglu &&
         linear_back(r, s, layer, GPT_UP, r->d_wide, k->norm[1], NULL, r->d_narrow, true, grads, err)))
        return -1;
    return norm_back(r->m, &norm, &r->m->blocks[layer].norm[1], r->d_narrow, r->dx, true, grads, err);
}

static int attention_back(const struct gpt_work *r, const struct span *s, size_t layer,
                          const struct weights *grads, struct cairn_error *err)
{
    const struct kept *k = &r->kept[layer];
    struct nn *nn = r->m->nn;
    struct nn_norm norm = block_norm(r, s, layer, 0);
    struct nn_attention a = attention_of(r, s, layer);
    struct nn_heads heads[3];
    split_qkv(r, s, r->d_qkv, heads);
    struct nn_attention_back back = {
        .d_o = { r->d_narrow, a.o.by },
        .dq = heads[0],
        .dk = heads[1],
        .dv = heads[2],
        .delta = r->delta,
    };
    const void *d;
    nn_at(nn, "h.%zu.attn", layer);
    if (through_dropout(r, s, layer, DROP_ATTENTION, &d, err) ||
        linear_back(r, s, layer, GPT_PROJ, d, k->attention, NULL, r->d_narrow, false, grads, err) ||
        nn_attention_back(nn, &a, &back, err) || rope(r, s, r->d_qkv, true, err) ||
        linear_back(r, s, layer, GPT_QKV, r->d_qkv, k->norm[0], NULL, r->d_narrow, false, grads, err))
        return -1;
    return norm_back(r->m, &norm, &r->m->blocks[layer].norm[0], r->d_narrow, r->dx, true, grads, err);
}

/* Loss of every row; on the way back also the gradients of the head and of what went into it. */
static int head(struct gpt_work *r, const struct gpt_pass *p, const struct weights *grads,
                struct cairn_error *err)
{
    const struct gpt *m = r->m;
    const struct slot *slot = &r->slots[p->slot];
    for (size_t first = 0; first < r->rows; first += r->at_once) {
        size_t rows = r->rows - first < r->at_once ? r->rows - first : r->at_once;
        struct nn_linear_back back = {
            .dy = r->scores,
            .x = from_row(r, r->last, first, m->shape.width),
            .w = table(m, m->head),
            .dx = from_row(r, r->d_narrow, first, m->shape.width),
            .rows = rows,
            .in = m->shape.width,
            .out = m->vocab_kept,
        };
        if (score(r, first, rows, err) ||
            nn_cross_entropy(m->nn, slot->loss + first, grads ? r->scores : NULL, r->scores,
                             slot->targets + first, rows, m->shape.vocab, m->vocab_kept, p->scale,
                             p->smoothing, err))
            return -1;
        if (!grads)
            continue;
        back.dw = grad_matrix(m, grads, m->head);
        if (nn_linear_back(m->nn, &back, err))
            return -1;
    }
    return 0;
}

static int embed_back(const struct gpt_work *r, const struct span *s, const struct weights *grads,
                      struct cairn_error *err)
{
    const struct gpt *m = r->m;
    const struct slot *slot = &r->slots[s->pass->slot];
    struct nn_drop drop = drop_at(r, s, m->shape.layers, DROP_EMBEDDING, m->shape.dropout);
    size_t width = m->shape.width;
    if (m->lora.rank)
        return 0;
    nn_at(m->nn, "embedding");
    if (nn_dropout(m->nn, r->dx, r->dx, r->rows * width, &drop, err) ||
        nn_embedding_back(m->nn, grad_matrix(m, grads, m->wte), r->dx, slot->list_ids, slot->list_first,
                          slot->list_members, slot->lists, r->rows, width, m->shape.vocab, err))
        return -1;
    if (m->shape.rope)
        return 0;
    return nn_embedding_back(m->nn, grad_matrix(m, grads, m->wpe), r->dx, r->position_ids, r->position_first,
                             r->position_members, r->o.tokens, r->rows, width, m->shape.context, err);
}

static int backward(const struct gpt_work *r, const struct span *s, const struct weights *grads,
                    struct cairn_error *err)
{
    struct nn_norm last = last_norm(r, r->rows);
    nn_at(r->m->nn, "ln_f");
    if (norm_back(r->m, &last, &r->m->norm, r->d_narrow, r->dx, false, grads, err))
        return -1;
    const struct weights *w = &r->m->weights;
    struct gpu_stream *stream = r->m->nn->stream;
    for (size_t i = r->m->shape.layers; i-- > 0;) {
        bool gone = r->o.recompute && i + 1 < r->m->shape.layers;
        if (weights_need(w, stream, i, i ? i - 1 : 0, err) || (gone && block_inside(r, s, i, err)) ||
            mlp_back(r, s, i, grads, err) || attention_back(r, s, i, grads, err) ||
            weights_passed(w, stream, i, err))
            return -1;
    }
    return embed_back(r, s, grads, err);
}

/* ---- passes ---- */

int gpt_run(struct gpt_work *r, const struct gpt_pass *p, const struct weights *grads,
            struct cairn_error *err)
{
    assert(!grads || r->o.train);
    struct span s = { .samples = r->o.samples, .tokens = r->o.tokens, .pass = p };
    if (forward(r, &s, r->slots[p->slot].ids, err) || head(r, p, grads, err))
        return -1;
    return grads ? backward(r, &s, grads, err) : 0;
}

int gpt_loss(struct gpt_work *r, size_t slot, double *sum, size_t *targets, struct cairn_error *err)
{
    float *losses = r->losses + slot * r->rows;
    struct nn *nn = r->m->nn;
    if (gpu_download(nn->g, nn->stream, losses, r->slots[slot].loss, r->rows * sizeof(float), err) ||
        gpu_wait(nn->g, nn->stream, err))
        return -1;
    *sum = 0;
    for (size_t i = 0; i < r->rows; i++)
        *sum += (double)losses[i];
    *targets = r->slots[slot].n_targets;
    return 0;
}

/* Numbers in the storage format, rows of `kept` of which `columns` are wanted. */
static int fetch(const struct gpt_work *r, const void *from, size_t rows, size_t columns, size_t kept,
                 float *into, struct cairn_error *err)
{
    struct nn *nn = r->m->nn;
    size_t width = storage_size(nn->storage);
    enum dtype t = storage_dtype(nn->storage);
    CLEANUP(mem_free) char *bytes = malloc(rows * kept * width);
    if (!bytes)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu scores", rows * kept);
    if (gpu_download(nn->g, nn->stream, bytes, from, rows * kept * width, err) ||
        gpu_wait(nn->g, nn->stream, err))
        return -1;
    for (size_t i = 0; i < rows; i++)
        dtype_convert(into + i * columns, DTYPE_F32, bytes + i * kept * width, t, columns,
                      &(struct dtype_how){ 0 });
    return 0;
}

int gpt_next(struct gpt_work *r, const int *ids, size_t tokens, size_t past, float *scores,
             struct cairn_error *err)
{
    assert(r->o.samples == 1 && !r->o.train && tokens > 0);
    if (past + tokens > r->o.tokens)
        return cairn_fail(err, CAIRN_EUSAGE, "%zu tokens; there is room for %zu", past + tokens, r->o.tokens);
    struct span s = { .samples = 1, .tokens = tokens, .past = past };
    int *staging = r->slots[0].staging;
    if (gpt_send(r, r->slots[0].ids, &staging, ids, tokens, err) || forward(r, &s, r->slots[0].ids, err) ||
        score(r, tokens - 1, 1, err))
        return -1;
    return fetch(r, r->scores, 1, r->m->shape.vocab, r->m->vocab_kept, scores, err);
}

int gpt_scores(struct gpt_work *r, float *scores, struct cairn_error *err)
{
    size_t vocab = r->m->shape.vocab;
    for (size_t first = 0; first < r->rows; first += r->at_once) {
        size_t rows = r->rows - first < r->at_once ? r->rows - first : r->at_once;
        if (score(r, first, rows, err) ||
            fetch(r, r->scores, rows, vocab, r->m->vocab_kept, scores + first * vocab, err))
            return -1;
    }
    return 0;
}

int gpt_between(struct gpt_work *r, size_t block, bool before_mlp, float *out, struct cairn_error *err)
{
    size_t width = r->m->shape.width;
    return fetch(r, before_mlp ? r->kept[block].middle : r->x[block], r->rows, width, width, out, err);
}
