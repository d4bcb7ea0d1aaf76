/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/gpt_inside.h"
#include <assert.h>

/* Where a pass is: which tokens it goes over, and in which block it is. */
struct at {
    const struct gpt_work *work;
    size_t samples, tokens;
    size_t past;                 /* tokens before these, from calls before */
    const struct gpt_pass *pass; /* NULL: without dropout */
    const struct weights *grads; /* NULL: forward alone */
    size_t layer;
};

static size_t rows_of(const struct at *at)
{
    return at->samples * at->tokens;
}

/* Places of dropout.  Each has a stream of random numbers of its own, in each layer and pass. */
enum { DROP_LORA, DROP_ATTENTION = GPT_MATRICES, DROP_MLP, DROP_EMBEDDING, DROP_PLACES = 16 };

static struct nn_drop drop_at(const struct at *at, size_t layer, int place, float rate)
{
    if (!at->pass || !at->pass->learn)
        return (struct nn_drop){ 0 };
    uint64_t block = at->pass->stream * (at->work->m->shape.layers + 1) + layer;
    return (struct nn_drop){ .rate = rate,
                             .seed = at->pass->seed,
                             .stream = block * DROP_PLACES + (uint64_t)place };
}

/* What a block adds to x comes through one of two matrices, and through dropout. */
static struct nn_drop drop_behind(const struct at *at, enum gpt_matrix which)
{
    int place = which == GPT_PROJ ? DROP_ATTENTION : DROP_MLP;
    return drop_at(at, at->layer, place, at->work->m->shape.dropout);
}

static struct lora_call lora_of(const struct at *at, enum gpt_matrix which, const struct nn_drop *drop,
                                const void *x)
{
    const struct gpt *m = at->work->m;
    const struct gpt_linear *l = &m->blocks[at->layer].linear[which];
    return (struct lora_call){
        .lora = &m->lora,
        .site = &l->lora,
        .scratch = &at->work->lora,
        .drop = drop,
        .x = x,
        .rows = rows_of(at),
        .in = l->in,
        .out = l->out,
    };
}

/* ---- forward ---- */

/* y = x wᵀ + bias [+ residual], with GELU where `before` is given. */
struct linear {
    const void *x;
    void *y;
    void *before; /* gets the input of GELU */
    const void *residual;
};

static int linear(const struct at *at, enum gpt_matrix which, struct linear io, struct cairn_error *err)
{
    const struct gpt *m = at->work->m;
    const struct gpt_linear *l = &m->blocks[at->layer].linear[which];
    bool gelu_after = io.before && l->lora.n; /* what LoRA adds goes through GELU too */
    struct nn_drop drop = drop_at(at, at->layer, DROP_LORA + which, m->lora.dropout);
    struct lora_call lora = lora_of(at, which, &drop, io.x);
    void *w;
    if (weights_matrix(&m->weights, m->nn->stream, &m->params.list[l->w], &w, err))
        return -1;
    struct nn_linear args = {
        .x = io.x,
        .w = w,
        .bias = m->shape.bias ? weights_vector(&m->weights, &m->params.list[l->b]) : NULL,
        .y = gelu_after ? io.before : io.y,
        .before = gelu_after ? NULL : io.before,
        .residual = io.residual,
        .rows = rows_of(at),
        .in = l->in,
        .out = l->out,
    };
    if (nn_linear(m->nn, &args, err) || lora_forward(m->nn, &lora, args.y, err))
        return -1;
    return gelu_after ? nn_gelu(m->nn, io.y, io.before, args.rows * l->out, err) : 0;
}

/* y = residual + dropout(x wᵀ + bias). */
static int add_through(const struct at *at, enum gpt_matrix which, struct linear io, struct cairn_error *err)
{
    const struct gpt_work *r = at->work;
    struct nn_drop drop = drop_behind(at, which);
    size_t n = rows_of(at) * r->m->shape.width;
    if (drop.rate == 0)
        return linear(at, which, io, err);
    return linear(at, which, (struct linear){ .x = io.x, .y = r->branch }, err) ||
                   nn_dropout(r->m->nn, r->branch, r->branch, n, &drop, err) ||
                   nn_add(r->m->nn, io.y, io.residual, r->branch, n, err)
               ? -1
               : 0;
}

/* All but x, y and the statistics. */
static struct nn_norm norm_of(const struct at *at, const struct gpt_norm *n)
{
    const struct gpt *m = at->work->m;
    bool has_bias = m->shape.bias && m->shape.norm == NN_NORM_LAYER;
    return (struct nn_norm){
        .kind = m->shape.norm,
        .w = weights_vector(&m->weights, &m->params.list[n->w]),
        .b = has_bias ? weights_vector(&m->weights, &m->params.list[n->b]) : NULL,
        .rows = rows_of(at),
        .columns = m->shape.width,
        .epsilon = m->shape.norm_epsilon,
    };
}

static struct nn_norm block_norm(const struct at *at, int which)
{
    const struct activations *k = &at->work->saved[at->layer];
    struct nn_norm n = norm_of(at, &at->work->m->blocks[at->layer].norm[which]);
    n.x = which ? k->middle : at->work->x[at->layer];
    n.y = k->norm[which];
    n.mean = k->mean[which];
    n.rstd = k->rstd[which];
    return n;
}

static struct nn_norm last_norm(const struct at *at)
{
    const struct gpt_work *r = at->work;
    struct nn_norm n = norm_of(at, &r->m->norm);
    n.x = r->x[r->m->shape.layers];
    n.y = r->last;
    n.mean = r->last_mean;
    n.rstd = r->last_rstd;
    return n;
}

/* q, k and v, side by side in rows: the heads of q, those of k, those of v. */
static void split_qkv(const struct at *at, void *qkv, struct nn_heads out[3])
{
    const struct gpt_shape *s = &at->work->m->shape;
    size_t size = gpt_head_size(s), elem_bytes = storage_size(at->work->m->nn->storage);
    const size_t first[3] = { 0, s->heads * size, (s->heads + s->kv_heads) * size };
    for (int i = 0; i < 3; i++)
        out[i] = nn_heads_in_rows((char *)qkv + first[i] * elem_bytes, at->tokens, gpt_qkv_rows(s), size);
}

/* The queries of these tokens; keys and values from the first token on. */
static struct nn_attention attention_of(const struct at *at)
{
    const struct gpt_shape *s = &at->work->m->shape;
    const struct activations *k = &at->work->saved[at->layer];
    size_t size = gpt_head_size(s);
    struct nn_heads heads[3];
    split_qkv(at, k->qkv, heads);
    heads[0].at = gpt_row_at(at->work, heads[0].at, at->past, gpt_qkv_rows(s));
    return (struct nn_attention){
        .q = heads[0],
        .k = heads[1],
        .v = heads[2],
        .o = nn_heads_in_rows(k->attention, at->tokens, s->heads * size, size),
        .lse = k->lse,
        .samples = at->samples,
        .queries = at->tokens,
        .keys = at->past + at->tokens,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .size = size,
        .causal = true,
        .past = at->past,
    };
}

/* Rotates q and k of these tokens, or their gradients. */
static int rope(const struct at *at, void *qkv, bool back, struct cairn_error *err)
{
    const struct gpt *m = at->work->m;
    const size_t heads[2] = { m->shape.heads, m->shape.kv_heads };
    size_t size = gpt_head_size(&m->shape), first = at->past * (size / 2);
    struct nn_heads parts[3];
    split_qkv(at, qkv, parts);
    for (int i = 0; i < 2 && m->shape.rope; i++) {
        struct nn_rope args = {
            .x = parts[i],
            .samples = at->samples,
            .tokens = at->tokens,
            .heads = heads[i],
            .size = size,
            .cos_ = m->rope_cos + first,
            .sin_ = m->rope_sin + first,
            .back = back,
        };
        if (nn_rope(m->nn, &args, err))
            return -1;
    }
    return 0;
}

/* All of a block but its last matrix, so that the backward pass has the input of that: from x[layer] to
 * `act`. */
static int block_inside(const struct at *at, struct cairn_error *err)
{
    const struct gpt_work *r = at->work;
    const struct activations *k = &r->saved[at->layer];
    struct nn *nn = r->m->nn;
    struct nn_norm first = block_norm(at, 0), second = block_norm(at, 1);
    struct nn_attention a = attention_of(at);
    struct linear qkv = { .x = k->norm[0], .y = a.q.at };
    struct linear out = { .x = k->attention, .y = k->middle, .residual = r->x[at->layer] };
    nn_at(nn, "h.%zu.attn", at->layer);
    if (nn_norm(nn, &first, err) || linear(at, GPT_QKV, qkv, err) || rope(at, a.q.at, false, err) ||
        nn_attention(nn, &a, err) || add_through(at, GPT_PROJ, out, err))
        return -1;
    nn_at(nn, "h.%zu.mlp", at->layer);
    if (nn_norm(nn, &second, err))
        return -1;
    if (!r->m->shape.swiglu)
        return linear(at, GPT_FC, (struct linear){ .x = k->norm[1], .y = k->act, .before = k->fc }, err);
    return linear(at, GPT_FC, (struct linear){ .x = k->norm[1], .y = k->fc }, err) ||
                   linear(at, GPT_UP, (struct linear){ .x = k->norm[1], .y = k->up }, err) ||
                   nn_swiglu(nn, k->act, k->fc, k->up, rows_of(at) * r->m->shape.ffn, err)
               ? -1
               : 0;
}

/* From ids to the input of the head.  The next block is uploaded while one is computed. */
static int forward(struct at *at, const int *ids, struct cairn_error *err)
{
    const struct gpt_work *r = at->work;
    const struct gpt *m = r->m;
    size_t layers = m->shape.layers, width = m->shape.width;
    struct nn_drop drop = drop_at(at, layers, DROP_EMBEDDING, m->shape.dropout);
    struct nn_embedding embedding = {
        .y = r->x[0],
        .table = gpt_table(m, m->wte),
        .positions = m->shape.rope ? NULL : gpt_row_at(r, gpt_table(m, m->wpe), at->past, width),
        .ids = ids,
        .rows = rows_of(at),
        .columns = width,
        .limit = m->shape.vocab,
        .n_positions = at->tokens,
    };
    nn_at(m->nn, "embedding");
    if (nn_embedding(m->nn, &embedding, err) ||
        nn_dropout(m->nn, r->x[0], r->x[0], rows_of(at) * width, &drop, err))
        return -1;
    for (size_t i = 0; i < layers; i++) {
        struct linear down = { .x = r->saved[i].act, .y = r->x[i + 1], .residual = r->saved[i].middle };
        at->layer = i;
        if (weights_need(&m->weights, m->nn->stream, i, i + 1 < layers ? i + 1 : i, err) ||
            block_inside(at, err) || add_through(at, GPT_DOWN, down, err) ||
            weights_passed(&m->weights, m->nn->stream, i, err))
            return -1;
    }
    struct nn_norm last = last_norm(at);
    nn_at(m->nn, "ln_f");
    return nn_norm(m->nn, &last, err);
}

/* ---- backward ---- */

/* Where a parameter's gradient is added to; NULL: it is frozen. */
static float *grad_vector(const struct at *at, size_t index)
{
    const struct gpt *m = at->work->m;
    return m->lora.rank ? NULL : weights_vector(at->grads, &m->params.list[index]);
}

static float *grad_matrix(const struct at *at, size_t index)
{
    const struct gpt *m = at->work->m;
    struct cairn_error none;
    void *p = NULL;
    if (!m->lora.rank)
        weights_matrix(at->grads, NULL, &m->params.list[index], &p, &none);
    return p;
}

/* From dy to the gradients of a matrix, its bias, its pairs and x. */
struct linear_back {
    const void *dy, *x;
    const void *before; /* where x came out of GELU: the input of GELU, and dx is its gradient */
    void *dx;
    bool add; /* to the contents of dx */
};

/* What LoRA adds to the gradient of x must be added before GELU's slope. */
static int linear_back(const struct at *at, enum gpt_matrix which, struct linear_back io,
                       struct cairn_error *err)
{
    const struct gpt *m = at->work->m;
    const struct gpt_linear *l = &m->blocks[at->layer].linear[which];
    bool gelu_after = io.before && l->lora.n;
    struct nn_drop drop = drop_at(at, at->layer, DROP_LORA + which, m->lora.dropout);
    struct lora_call lora = lora_of(at, which, &drop, io.x);
    void *w;
    if (weights_matrix(&m->weights, m->nn->stream, &m->params.list[l->w], &w, err))
        return -1;
    struct nn_linear_back args = {
        .dy = io.dy,
        .x = io.x,
        .w = w,
        .slope_of = gelu_after ? NULL : io.before,
        .dx = io.dx,
        .dw = grad_matrix(at, l->w),
        .dbias = m->shape.bias ? grad_vector(at, l->b) : NULL,
        .rows = rows_of(at),
        .in = l->in,
        .out = l->out,
        .add = io.add,
    };
    if (nn_linear_back(m->nn, &args, err) || lora_back(m->nn, &lora, io.dy, io.dx, at->grads, err))
        return -1;
    return gelu_after ? nn_gelu_back(m->nn, io.dx, io.dx, io.before, args.rows * l->in, err) : 0;
}

/* From the gradient of a norm's output, in d_narrow, to that of x, in dx. */
static int norm_back(const struct at *at, const struct nn_norm *n, const struct gpt_norm *params, bool add,
                     struct cairn_error *err)
{
    struct nn_norm_back back = {
        .dy = at->work->d_narrow,
        .dx = at->work->dx,
        .add = add,
        .dw = grad_vector(at, params->w),
        .db = n->b ? grad_vector(at, params->b) : NULL,
    };
    return nn_norm_back(at->work->m->nn, n, &back, err);
}

/* The gradient of what a block added, before its dropout: *d. */
static int dropout_back(const struct at *at, enum gpt_matrix which, const void **d, struct cairn_error *err)
{
    const struct gpt_work *r = at->work;
    struct nn_drop drop = drop_behind(at, which);
    *d = drop.rate == 0 ? r->dx : r->branch;
    if (drop.rate == 0)
        return 0;
    return nn_dropout(r->m->nn, r->branch, r->dx, rows_of(at) * r->m->shape.width, &drop, err);
}

static int mlp_back(const struct at *at, struct cairn_error *err)
{
    const struct gpt_work *r = at->work;
    const struct activations *k = &r->saved[at->layer];
    struct nn_norm norm = block_norm(at, 1);
    bool swiglu = r->m->shape.swiglu;
    const void *d;
    nn_at(r->m->nn, "h.%zu.mlp", at->layer);
    if (dropout_back(at, GPT_DOWN, &d, err))
        return -1;
    struct linear_back down = { .dy = d, .x = k->act, .before = swiglu ? NULL : k->fc, .dx = r->d_wide };
    struct nn_swiglu_back act = { .dgate = r->d_wide2,
                                  .dup = r->d_wide,
                                  .dy = r->d_wide,
                                  .gate = k->fc,
                                  .up = k->up,
                                  .n = rows_of(at) * r->m->shape.ffn };
    struct linear_back fc = { .dy = swiglu ? r->d_wide2 : r->d_wide, .x = k->norm[1], .dx = r->d_narrow };
    struct linear_back up = { .dy = r->d_wide, .x = k->norm[1], .dx = r->d_narrow, .add = true };
    if (linear_back(at, GPT_DOWN, down, err) || (swiglu && nn_swiglu_back(r->m->nn, &act, err)) ||
        linear_back(at, GPT_FC, fc, err) || (swiglu && linear_back(at, GPT_UP, up, err)))
        return -1;
    return norm_back(at, &norm, &r->m->blocks[at->layer].norm[1], true, err);
}

static int attention_back(const struct at *at, struct cairn_error *err)
{
    const struct gpt_work *r = at->work;
    const struct activations *k = &r->saved[at->layer];
    struct nn *nn = r->m->nn;
    struct nn_norm norm = block_norm(at, 0);
    struct nn_attention a = attention_of(at);
    struct nn_heads heads[3];
    const void *d;
    split_qkv(at, r->d_qkv, heads);
    struct nn_attention_back back = {
        .d_o = { r->d_narrow, a.o.by },
        .dq = heads[0],
        .dk = heads[1],
        .dv = heads[2],
        .delta = r->delta,
    };
    nn_at(nn, "h.%zu.attn", at->layer);
    if (dropout_back(at, GPT_PROJ, &d, err))
        return -1;
    struct linear_back out = { .dy = d, .x = k->attention, .dx = r->d_narrow };
    struct linear_back qkv = { .dy = r->d_qkv, .x = k->norm[0], .dx = r->d_narrow };
    if (linear_back(at, GPT_PROJ, out, err) || nn_attention_back(nn, &a, &back, err) ||
        rope(at, r->d_qkv, true, err) || linear_back(at, GPT_QKV, qkv, err))
        return -1;
    return norm_back(at, &norm, &r->m->blocks[at->layer].norm[0], true, err);
}

/* The loss of every row; with gradients also those of the head and of what went into it. */
static int head(const struct at *at, struct cairn_error *err)
{
    const struct gpt_work *r = at->work;
    const struct gpt *m = r->m;
    const struct slot *slot = &r->slots[at->pass->slot];
    for (size_t first = 0; first < r->rows; first += r->at_once) {
        size_t rows = r->rows - first < r->at_once ? r->rows - first : r->at_once;
        struct nn_cross_entropy loss = {
            .loss = slot->loss + first,
            .dlogits = at->grads ? r->scores : NULL,
            .logits = r->scores,
            .targets = slot->targets + first,
            .rows = rows,
            .columns = m->shape.vocab,
            .stride = m->vocab_padded,
            .scale = at->pass->scale,
            .smoothing = at->pass->smoothing,
        };
        if (gpt_score(r, first, rows, err) || nn_cross_entropy(m->nn, &loss, err))
            return -1;
        if (!at->grads)
            continue;
        struct nn_linear_back back = {
            .dy = r->scores,
            .x = gpt_row_at(r, r->last, first, m->shape.width),
            .w = gpt_table(m, m->head),
            .dx = gpt_row_at(r, r->d_narrow, first, m->shape.width),
            .dw = grad_matrix(at, m->head),
            .rows = rows,
            .in = m->shape.width,
            .out = m->vocab_padded,
        };
        if (nn_linear_back(m->nn, &back, err))
            return -1;
    }
    return 0;
}

static int embed_back(const struct at *at, struct cairn_error *err)
{
    const struct gpt_work *r = at->work;
    const struct gpt *m = r->m;
    const struct slot *slot = &r->slots[at->pass->slot];
    struct nn_drop drop = drop_at(at, m->shape.layers, DROP_EMBEDDING, m->shape.dropout);
    if (m->lora.rank)
        return 0;
    struct nn_embedding_back tokens = {
        .dtable = grad_matrix(at, m->wte),
        .dy = r->dx,
        .ids = slot->list_ids,
        .first = slot->list_first,
        .members = slot->list_members,
        .lists = slot->lists,
        .rows = r->rows,
        .columns = m->shape.width,
        .limit = m->shape.vocab,
    };
    nn_at(m->nn, "embedding");
    if (nn_dropout(m->nn, r->dx, r->dx, r->rows * m->shape.width, &drop, err) ||
        nn_embedding_back(m->nn, &tokens, err))
        return -1;
    if (m->shape.rope)
        return 0;
    struct nn_embedding_back positions = {
        .dtable = grad_matrix(at, m->wpe),
        .dy = r->dx,
        .ids = r->position_ids,
        .first = r->position_first,
        .members = r->position_members,
        .lists = r->o.tokens,
        .rows = r->rows,
        .columns = m->shape.width,
        .limit = m->shape.context,
    };
    return nn_embedding_back(m->nn, &positions, err);
}

static int backward(struct at *at, struct cairn_error *err)
{
    const struct gpt_work *r = at->work;
    const struct weights *w = &r->m->weights;
    struct gpu_stream *stream = r->m->nn->stream;
    struct nn_norm last = last_norm(at);
    nn_at(r->m->nn, "ln_f");
    if (norm_back(at, &last, &r->m->norm, false, err))
        return -1;
    for (size_t i = r->m->shape.layers; i-- > 0;) {
        bool recompute = r->o.recompute && i + 1 < r->m->shape.layers; /* the last block's are still valid */
        at->layer = i;
        if (weights_need(w, stream, i, i ? i - 1 : 0, err) || (recompute && block_inside(at, err)) ||
            mlp_back(at, err) || attention_back(at, err) || weights_passed(w, stream, i, err))
            return -1;
    }
    return embed_back(at, err);
}

/* ---- passes ---- */

int gpt_run(struct gpt_work *r, const struct gpt_pass *p, const struct weights *grads,
            struct cairn_error *err)
{
    assert(!grads || r->o.train);
    struct at at = { .work = r, .samples = r->o.samples, .tokens = r->o.tokens, .pass = p, .grads = grads };
    if (forward(&at, r->slots[p->slot].ids, err) || head(&at, err))
        return -1;
    return grads ? backward(&at, err) : 0;
}

int gpt_next(struct gpt_work *r, const int *ids, size_t tokens, size_t past, float *scores,
             struct cairn_error *err)
{
    assert(r->o.samples == 1 && !r->o.train && tokens > 0);
    if (past + tokens > r->o.tokens)
        return cairn_fail(err, CAIRN_EUSAGE, "%zu tokens; the workspace holds %zu", past + tokens,
                          r->o.tokens);
    struct at at = { .work = r, .samples = 1, .tokens = tokens, .past = past };
    int *staging = r->slots[0].staging;
    if (gpt_send(r, r->slots[0].ids, &staging, ids, tokens, err) || forward(&at, r->slots[0].ids, err) ||
        gpt_score(r, tokens - 1, 1, err))
        return -1;
    struct gpt_result last = { r->scores, 1, r->m->shape.vocab, r->m->vocab_padded };
    return gpt_fetch(r, last, scores, err);
}
