/* SPDX-License-Identifier: Apache-2.0
 * A pass through the transformer.  Where the stream is f32 (wide), ops that read or write it are told so. */
#include "nn/wan_inside.h"
#include <assert.h>

static const float epsilon = 1e-6f, clip_epsilon = 1e-5f;

/* The six vectors that shift, scale and gate what a block does. */
enum { SHIFT_ATTENTION, SCALE_ATTENTION, GATE_ATTENTION, SHIFT_FFN, SCALE_FFN, GATE_FFN };
enum { SHIFT_HEAD, SCALE_HEAD, HEAD_MODULATIONS };

/* Where a pass is. */
struct at {
    struct wan_work *w;
    const struct wan *m;
    struct nn *nn;
    const struct wan_slot *slot;
    const struct params *params;
    const struct weights *weights;
    size_t lora; /* which one */
    const struct model_pass *pass;
    const struct weights *grads; /* NULL: forward alone */
    size_t rows;                 /* of all samples */
    size_t layer;
};

static const struct wan_block *block_of(const struct at *at)
{
    return &at->m->blocks[at->layer];
}

static const struct wan_activations *saved_of(const struct at *at)
{
    return &at->w->saved[at->layer];
}

static const float *vector(const struct at *at, size_t index)
{
    return weights_vector(at->weights, &at->params->list[index]);
}

static int matrix(const struct at *at, size_t index, void **out, struct cairn_error *err)
{
    return weights_matrix(at->weights, at->nn->stream, &at->params->list[index], out, err);
}

/* A row of a tensor in the storage format, or of the stream. */
static void *row_at(const struct at *at, const void *p, size_t row, size_t columns)
{
    return (char *)p + row * columns * storage_size(at->nn->storage);
}

static void *stream_row(const struct at *at, const void *p, size_t row)
{
    size_t size = at->w->wide ? sizeof(float) : storage_size(at->nn->storage);
    return (char *)p + row * at->m->shape.width * size;
}

/* ---- linears ---- */

/* A linear outside the blocks. */
static int linear(const struct at *at, const struct wan_linear *l, const void *x, void *y, size_t rows,
                  struct cairn_error *err)
{
    void *w;
    if (matrix(at, l->w, &w, err))
        return -1;
    struct nn_linear args = {
        .x = x, .w = w, .bias = vector(at, l->b), .y = y, .rows = rows, .in = l->in, .out = l->out
    };
    return nn_linear(at->nn, &args, err);
}

static struct nn_drop drop_at(const struct at *at, enum wan_matrix which)
{
    if (!at->pass->learn || !at->m->model.n_loras)
        return (struct nn_drop){ 0 };
    return (struct nn_drop){
        .rate = at->m->loras[at->lora].dropout,
        .seed = at->pass->seed,
        .stream = (at->pass->stream * at->m->shape.layers + at->layer) * WAN_MATRICES + (uint64_t)which,
    };
}

static struct lora_call lora_of(const struct at *at, enum wan_matrix which, const struct nn_drop *drop,
                                const void *x, size_t rows)
{
    return (struct lora_call){
        .lora = &at->m->loras[at->lora],
        .site = &block_of(at)->lora[at->lora][which],
        .scratch = &at->w->lora,
        .drop = drop,
        .x = x,
        .rows = rows,
        .in = block_of(at)->linear[which].in,
        .out = block_of(at)->linear[which].out,
    };
}

/* y = x wᵀ + bias [+ residual] with the LoRA's part, through GELU where `before` is given. */
struct io {
    const void *x;
    void *y;
    void *before; /* gets the input of GELU */
    const void *residual;
    size_t rows;
};

static int block_linear(const struct at *at, enum wan_matrix which, struct io io, struct cairn_error *err)
{
    const struct wan_linear *l = &block_of(at)->linear[which];
    struct nn_drop drop = drop_at(at, which);
    struct lora_call lora = lora_of(at, which, &drop, io.x, io.rows);
    bool gelu_after = io.before && lora.site->n; /* what LoRA adds goes through GELU too */
    void *w;
    if (matrix(at, l->w, &w, err))
        return -1;
    struct nn_linear args = {
        .x = io.x,
        .w = w,
        .bias = vector(at, l->b),
        .y = gelu_after ? io.before : io.y,
        .before = gelu_after ? NULL : io.before,
        .residual = io.residual,
        .rows = io.rows,
        .in = l->in,
        .out = l->out,
    };
    if (nn_linear(at->nn, &args, err) || lora_forward(at->nn, &lora, args.y, err))
        return -1;
    return gelu_after ? nn_gelu(at->nn, io.y, io.before, io.rows * l->out, err) : 0;
}

/* From dy to the gradients of the LoRA and, where dx is given, of x. */
struct io_back {
    const void *dy, *x;
    const void *before; /* where x came out of GELU: the input of GELU, and dx is its gradient */
    void *dx;
    bool add; /* to the contents of dx */
    size_t rows;
};

static int block_linear_back(const struct at *at, enum wan_matrix which, struct io_back io,
                             struct cairn_error *err)
{
    const struct wan_linear *l = &block_of(at)->linear[which];
    struct nn_drop drop = drop_at(at, which);
    struct lora_call lora = lora_of(at, which, &drop, io.x, io.rows);
    bool gelu_after = io.before && lora.site->n;
    void *w;
    if (io.dx) {
        if (matrix(at, l->w, &w, err))
            return -1;
        struct nn_linear_back args = {
            .dy = io.dy,
            .w = w,
            .slope_of = gelu_after ? NULL : io.before,
            .dx = io.dx,
            .rows = io.rows,
            .in = l->in,
            .out = l->out,
            .add = io.add,
        };
        if (nn_linear_back(at->nn, &args, err))
            return -1;
    }
    if (lora_back(at->nn, &lora, io.dy, io.dx, at->grads, err))
        return -1;
    return gelu_after ? nn_gelu_back(at->nn, io.dx, io.dx, io.before, io.rows * l->in, err) : 0;
}

/* ---- modulation ---- */

static const float *modulation(const struct at *at, int part, size_t set)
{
    return at->w->modulation + ((size_t)part * wan_sets(at->slot) + set) * at->m->shape.width;
}

/* What the time makes of this block. */
static int modulate_block(const struct at *at, struct cairn_error *err)
{
    struct nn_modulation args = {
        .y = at->w->modulation,
        .x = vector(at, block_of(at)->modulation),
        .add = at->w->time_projected,
        .sets = wan_sets(at->slot),
        .parts = WAN_MODULATIONS,
        .add_parts = WAN_MODULATIONS,
        .columns = at->m->shape.width,
    };
    return nn_modulation(at->nn, &args, err);
}

static int modulate_head(const struct at *at, struct cairn_error *err)
{
    struct nn_modulation args = {
        .y = at->w->modulation,
        .x = vector(at, at->m->head_modulation),
        .add = at->w->time,
        .sets = wan_sets(at->slot),
        .parts = HEAD_MODULATIONS,
        .add_parts = 1,
        .columns = at->m->shape.width,
    };
    return nn_modulation(at->nn, &args, err);
}

/* y = norm(x) (1 + scale) + shift, and back.  x and dx are parts of the stream. */
struct modulated {
    const void *x;
    void *y; /* dy on the way back */
    float *mean, *rstd;
    int shift, scale;
};

static struct nn_norm modulated_norm(const struct at *at, const struct modulated *n, struct wan_run run)
{
    return (struct nn_norm){
        .kind = NN_NORM_LAYER,
        .x = stream_row(at, n->x, run.first),
        .y = row_at(at, n->y, run.first, at->m->shape.width),
        .w = modulation(at, n->scale, run.set),
        .b = modulation(at, n->shift, run.set),
        .mean = n->mean + run.first,
        .rstd = n->rstd + run.first,
        .rows = run.rows,
        .columns = at->m->shape.width,
        .rows_per_w = run.rows_per_set,
        .epsilon = epsilon,
        .w_plus = 1,
        .wide = at->w->wide,
    };
}

static int modulated_forward(const struct at *at, const struct modulated *n, struct cairn_error *err)
{
    for (size_t i = 0; i < wan_runs(at->slot); i++) {
        struct nn_norm norm = modulated_norm(at, n, wan_run_at(at->slot, i));
        if (nn_norm(at->nn, &norm, err))
            return -1;
    }
    return 0;
}

/* To w->dx. */
static int modulated_back(const struct at *at, const struct modulated *n, bool add, struct cairn_error *err)
{
    for (size_t i = 0; i < wan_runs(at->slot); i++) {
        struct wan_run run = wan_run_at(at->slot, i);
        struct nn_norm norm = modulated_norm(at, n, run);
        struct nn_norm_back back = { .dy = norm.y, .dx = stream_row(at, at->w->dx, run.first), .add = add };
        if (nn_norm_back(at->nn, &norm, &back, err))
            return -1;
    }
    return 0;
}

/* y = x + gate z; on the way back z = gate dx. */
static int gated(const struct at *at, int gate, const void *x, const void *z, void *y,
                 struct cairn_error *err)
{
    for (size_t i = 0; i < wan_runs(at->slot); i++) {
        struct wan_run run = wan_run_at(at->slot, i);
        struct nn_gate args = {
            .y = stream_row(at, y, run.first),
            .x = stream_row(at, x, run.first),
            .z = row_at(at, z, run.first, at->m->shape.width),
            .gate = modulation(at, gate, run.set),
            .rows = run.rows,
            .columns = at->m->shape.width,
            .rows_per_gate = run.rows_per_set,
            .wide = at->w->wide,
        };
        if (nn_gate(at->nn, &args, err))
            return -1;
    }
    return 0;
}

static int gated_back(const struct at *at, int gate, void *dz, struct cairn_error *err)
{
    for (size_t i = 0; i < wan_runs(at->slot); i++) {
        struct wan_run run = wan_run_at(at->slot, i);
        struct nn_gate args = {
            .gate = modulation(at, gate, run.set),
            .rows = run.rows,
            .columns = at->m->shape.width,
            .rows_per_gate = run.rows_per_set,
            .wide = at->w->wide,
        };
        struct nn_gate_back back = {
            .dy = stream_row(at, at->w->dx, run.first),
            .dz = row_at(at, dz, run.first, at->m->shape.width),
        };
        if (nn_gate_back(at->nn, &args, &back, err))
            return -1;
    }
    return 0;
}

/* ---- attention ---- */

/* The RMS norm of all heads of q or k together. */
static struct nn_norm head_norm(const struct at *at, size_t weight, const void *x, void *y, float *rstd,
                                size_t rows)
{
    return (struct nn_norm){
        .kind = NN_NORM_RMS,
        .x = x,
        .y = y,
        .w = vector(at, weight),
        .rstd = rstd,
        .rows = rows,
        .columns = at->m->shape.width,
        .epsilon = epsilon,
    };
}

static int head_norm_back(const struct at *at, const struct nn_norm *n, const void *dy, void *dx,
                          struct cairn_error *err)
{
    struct nn_norm_back back = { .dy = dy, .dx = dx };
    return nn_norm_back(at->nn, n, &back, err);
}

static struct nn_heads heads_of(const struct at *at, void *x, size_t tokens)
{
    return nn_heads_in_rows(x, tokens, at->m->shape.width, wan_head_size(&at->m->shape));
}

static struct nn_attention attention_of(const struct at *at, void *q, const struct wan_attention *a,
                                        size_t keys)
{
    const struct wan_shape *s = &at->m->shape;
    return (struct nn_attention){
        .q = heads_of(at, q, at->slot->tokens),
        .k = heads_of(at, a->k, keys),
        .v = heads_of(at, a->v, keys),
        .o = heads_of(at, a->o, at->slot->tokens),
        .lse = a->lse,
        .samples = at->slot->samples,
        .queries = at->slot->tokens,
        .keys = keys,
        .heads = s->heads,
        .kv_heads = s->heads,
        .size = wan_head_size(s),
    };
}

/* Rotates q or k, or their gradients, by the places of the tokens. */
static int rope(const struct at *at, void *x, bool back, struct cairn_error *err)
{
    struct nn_rope args = {
        .x = heads_of(at, x, at->slot->tokens),
        .samples = at->slot->samples,
        .tokens = at->slot->tokens,
        .heads = at->m->shape.heads,
        .size = wan_head_size(&at->m->shape),
        .cos_ = at->w->rope_cos,
        .sin_ = at->w->rope_sin,
        .pairs = true,
        .back = back,
    };
    return nn_rope(at->nn, &args, err);
}

/* Keys and values of the caption, or of the image. */
struct cross {
    const struct wan_attention *a;
    enum wan_matrix k, v;
    size_t norm_k;
    const void *x; /* rows of the caption's or the image's features */
    size_t keys;   /* of a sample */
};

static struct cross cross_text(const struct at *at)
{
    return (struct cross){ &saved_of(at)->text,        WAN_CROSS_K, WAN_CROSS_V,
                           block_of(at)->cross_norm_k, at->w->text, at->m->shape.text_rows };
}

static struct cross cross_image(const struct at *at)
{
    return (struct cross){ &saved_of(at)->image,           WAN_CROSS_K_IMG, WAN_CROSS_V_IMG,
                           block_of(at)->cross_norm_k_img, at->w->clip,     at->m->shape.clip_rows };
}

static int cross_forward(const struct at *at, const struct cross *c, struct cairn_error *err)
{
    size_t rows = at->slot->samples * c->keys;
    struct nn_norm norm = head_norm(at, c->norm_k, c->a->k_raw, c->a->k, c->a->k_rstd, rows);
    struct nn_attention a = attention_of(at, saved_of(at)->cross_q, c->a, c->keys);
    return block_linear(at, c->k, (struct io){ .x = c->x, .y = c->a->k_raw, .rows = rows }, err) ||
                   nn_norm(at->nn, &norm, err) ||
                   block_linear(at, c->v, (struct io){ .x = c->x, .y = c->a->v, .rows = rows }, err) ||
                   nn_attention(at->nn, &a, err)
               ? -1
               : 0;
}

/* From d_narrow, the gradient of the output, to that of q; the features have none. */
static int cross_back(const struct at *at, const struct cross *c, void *dq, struct cairn_error *err)
{
    const struct wan_work *w = at->w;
    size_t rows = at->slot->samples * c->keys;
    struct nn_norm norm = head_norm(at, c->norm_k, c->a->k_raw, c->a->k, c->a->k_rstd, rows);
    struct nn_attention a = attention_of(at, saved_of(at)->cross_q, c->a, c->keys);
    struct nn_attention_back back = {
        .d_o = heads_of(at, w->d_narrow, at->slot->tokens),
        .dq = heads_of(at, dq, at->slot->tokens),
        .dk = heads_of(at, w->d_keys, c->keys),
        .dv = heads_of(at, w->d_values, c->keys),
        .delta = w->delta,
    };
    struct io_back k = { .dy = w->d_keys_raw, .x = c->x, .rows = rows };
    struct io_back v = { .dy = w->d_values, .x = c->x, .rows = rows };
    return nn_attention_back(at->nn, &a, &back, err) ||
                   head_norm_back(at, &norm, w->d_keys, w->d_keys_raw, err) ||
                   block_linear_back(at, c->k, k, err) || block_linear_back(at, c->v, v, err)
               ? -1
               : 0;
}

/* ---- a block, forward ---- */

static struct modulated first_norm(const struct at *at, void *y)
{
    const struct wan_activations *k = saved_of(at);
    return (struct modulated){ at->w->x[at->layer], y, k->mean[0], k->rstd[0], SHIFT_ATTENTION,
                               SCALE_ATTENTION };
}

static struct modulated ffn_norm(const struct at *at, void *y)
{
    const struct wan_activations *k = saved_of(at);
    return (struct modulated){ k->x2, y, k->mean[2], k->rstd[2], SHIFT_FFN, SCALE_FFN };
}

static struct nn_norm cross_norm(const struct at *at)
{
    const struct wan_activations *k = saved_of(at);
    return (struct nn_norm){
        .kind = NN_NORM_LAYER,
        .x = k->x1,
        .y = k->norm3,
        .w = vector(at, block_of(at)->norm3_w),
        .b = vector(at, block_of(at)->norm3_b),
        .mean = k->mean[1],
        .rstd = k->rstd[1],
        .rows = at->rows,
        .columns = at->m->shape.width,
        .epsilon = epsilon,
        .wide = at->w->wide,
    };
}

static int self_attention(const struct at *at, struct cairn_error *err)
{
    const struct wan_activations *k = saved_of(at);
    const struct wan_block *b = block_of(at);
    struct modulated norm = first_norm(at, k->norm1);
    struct nn_norm norm_q = head_norm(at, b->norm_q, k->q_raw, k->q, k->q_rstd, at->rows);
    struct nn_norm norm_k = head_norm(at, b->norm_k, k->self.k_raw, k->self.k, k->self.k_rstd, at->rows);
    struct nn_attention a = attention_of(at, k->q, &k->self, at->slot->tokens);
    struct io q = { .x = k->norm1, .y = k->q_raw, .rows = at->rows }, keys = q, v = q;
    struct io out = { .x = k->self.o, .y = at->w->branch, .rows = at->rows };
    keys.y = k->self.k_raw;
    v.y = k->self.v;
    nn_at(at->nn, "blocks.%zu.self_attn", at->layer);
    return modulated_forward(at, &norm, err) || block_linear(at, WAN_Q, q, err) ||
                   nn_norm(at->nn, &norm_q, err) || rope(at, k->q, false, err) ||
                   block_linear(at, WAN_K, keys, err) || nn_norm(at->nn, &norm_k, err) ||
                   rope(at, k->self.k, false, err) || block_linear(at, WAN_V, v, err) ||
                   nn_attention(at->nn, &a, err) || block_linear(at, WAN_O, out, err) ||
                   gated(at, GATE_ATTENTION, at->w->x[at->layer], at->w->branch, k->x1, err)
               ? -1
               : 0;
}

/* x2 = x1 + the linear of o. */
static int add_cross(const struct at *at, struct cairn_error *err)
{
    const struct wan_activations *k = saved_of(at);
    struct io out = { .x = k->cross_o, .y = k->x2, .residual = k->x1, .rows = at->rows };
    struct nn_gate add = {
        .y = k->x2,
        .x = k->x1,
        .z = at->w->branch,
        .rows = at->rows,
        .columns = at->m->shape.width,
        .wide = true,
    };
    if (!at->w->wide)
        return block_linear(at, WAN_CROSS_O, out, err);
    out.y = at->w->branch;
    out.residual = NULL;
    return block_linear(at, WAN_CROSS_O, out, err) || nn_gate(at->nn, &add, err) ? -1 : 0;
}

static int cross_attention(const struct at *at, struct cairn_error *err)
{
    const struct wan_activations *k = saved_of(at);
    const struct wan_block *b = block_of(at);
    struct cross text = cross_text(at), image = cross_image(at);
    struct nn_norm norm = cross_norm(at);
    struct nn_norm norm_q =
        head_norm(at, b->cross_norm_q, k->cross_q_raw, k->cross_q, k->cross_q_rstd, at->rows);
    struct io q = { .x = k->norm3, .y = k->cross_q_raw, .rows = at->rows };
    size_t n = at->rows * at->m->shape.width;
    nn_at(at->nn, "blocks.%zu.cross_attn", at->layer);
    if (nn_norm(at->nn, &norm, err) || block_linear(at, WAN_CROSS_Q, q, err) ||
        nn_norm(at->nn, &norm_q, err) || cross_forward(at, &text, err))
        return -1;
    if (at->m->shape.clip_width &&
        (cross_forward(at, &image, err) || nn_add(at->nn, k->cross_o, k->text.o, k->image.o, n, err)))
        return -1;
    return add_cross(at, err);
}

/* All of a block but its last linear, so that the backward pass has the input of that. */
static int block_inside(const struct at *at, struct cairn_error *err)
{
    const struct wan_activations *k = saved_of(at);
    struct modulated norm = ffn_norm(at, k->norm2);
    struct io fc = { .x = k->norm2, .y = k->act, .before = k->fc, .rows = at->rows };
    if (modulate_block(at, err) || self_attention(at, err) || cross_attention(at, err))
        return -1;
    nn_at(at->nn, "blocks.%zu.ffn", at->layer);
    return modulated_forward(at, &norm, err) || block_linear(at, WAN_FFN_IN, fc, err) ? -1 : 0;
}

static int block_forward(const struct at *at, struct cairn_error *err)
{
    const struct wan_activations *k = saved_of(at);
    struct io out = { .x = k->act, .y = at->w->branch, .rows = at->rows };
    return block_inside(at, err) || block_linear(at, WAN_FFN_OUT, out, err) ||
                   gated(at, GATE_FFN, k->x2, at->w->branch, at->w->x[at->layer + 1], err)
               ? -1
               : 0;
}

/* ---- a block, backward: w->dx is the gradient of its output, then of its input ---- */

static int ffn_back(const struct at *at, struct cairn_error *err)
{
    const struct wan_work *w = at->w;
    const struct wan_activations *k = saved_of(at);
    struct modulated norm = ffn_norm(at, w->d_narrow);
    struct io_back out = {
        .dy = w->d_narrow, .x = k->act, .before = k->fc, .dx = w->d_wide, .rows = at->rows
    };
    struct io_back fc = { .dy = w->d_wide, .x = k->norm2, .dx = w->d_narrow, .rows = at->rows };
    nn_at(at->nn, "blocks.%zu.ffn", at->layer);
    return gated_back(at, GATE_FFN, w->d_narrow, err) || block_linear_back(at, WAN_FFN_OUT, out, err) ||
                   block_linear_back(at, WAN_FFN_IN, fc, err) || modulated_back(at, &norm, true, err)
               ? -1
               : 0;
}

/* The gradient of what cross attention added, in the storage format: *d. */
static int cross_gradient(const struct at *at, const void **d, struct cairn_error *err)
{
    struct nn_gate gate = { .rows = at->rows, .columns = at->m->shape.width, .wide = true };
    struct nn_gate_back back = { .dy = at->w->dx, .dz = at->w->branch };
    *d = at->w->wide ? at->w->branch : at->w->dx;
    return at->w->wide ? nn_gate_back(at->nn, &gate, &back, err) : 0;
}

static int cross_attention_back(const struct at *at, struct cairn_error *err)
{
    const struct wan_work *w = at->w;
    const struct wan_activations *k = saved_of(at);
    const struct wan_block *b = block_of(at);
    struct cross text = cross_text(at), image = cross_image(at);
    struct nn_norm norm_q =
        head_norm(at, b->cross_norm_q, k->cross_q_raw, k->cross_q, k->cross_q_rstd, at->rows);
    struct nn_norm norm = cross_norm(at);
    struct nn_norm_back norm_back = { .dy = w->d_narrow, .dx = w->dx, .add = true };
    size_t n = at->rows * at->m->shape.width;
    void *dq = w->d_narrow2, *dq_image = w->d_wide;
    const void *d;
    nn_at(at->nn, "blocks.%zu.cross_attn", at->layer);
    if (cross_gradient(at, &d, err))
        return -1;
    struct io_back out = { .dy = d, .x = k->cross_o, .dx = w->d_narrow, .rows = at->rows };
    struct io_back q = { .dy = w->d_wide, .x = k->norm3, .dx = w->d_narrow, .rows = at->rows };
    if (block_linear_back(at, WAN_CROSS_O, out, err) || cross_back(at, &text, dq, err))
        return -1;
    if (at->m->shape.clip_width &&
        (cross_back(at, &image, dq_image, err) || nn_add(at->nn, dq, dq, dq_image, n, err)))
        return -1;
    return head_norm_back(at, &norm_q, dq, w->d_wide, err) || block_linear_back(at, WAN_CROSS_Q, q, err) ||
                   nn_norm_back(at->nn, &norm, &norm_back, err)
               ? -1
               : 0;
}

/* The gradients of q, k and v lie where the MLP's activations were, which are not needed any more.  The first
 * block's input has no gradient: what makes it is frozen. */
static int self_attention_back(const struct at *at, struct cairn_error *err)
{
    const struct wan_work *w = at->w;
    const struct wan_activations *k = saved_of(at);
    const struct wan_block *b = block_of(at);
    bool first = at->layer == 0;
    void *dq = k->fc, *dk = k->act, *dv = w->d_wide, *d_norm = first ? NULL : w->d_narrow2;
    size_t tokens = at->slot->tokens;
    struct nn_norm norm_q = head_norm(at, b->norm_q, k->q_raw, k->q, k->q_rstd, at->rows);
    struct nn_norm norm_k = head_norm(at, b->norm_k, k->self.k_raw, k->self.k, k->self.k_rstd, at->rows);
    struct modulated norm = first_norm(at, d_norm);
    struct nn_attention a = attention_of(at, k->q, &k->self, tokens);
    struct nn_attention_back back = {
        .d_o = heads_of(at, w->d_narrow2, tokens),
        .dq = heads_of(at, dq, tokens),
        .dk = heads_of(at, dk, tokens),
        .dv = heads_of(at, dv, tokens),
        .delta = w->delta,
    };
    struct io_back out = { .dy = w->d_narrow, .x = k->self.o, .dx = w->d_narrow2, .rows = at->rows };
    struct io_back q = { .dy = w->d_narrow, .x = k->norm1, .dx = d_norm, .rows = at->rows }, keys = q, v = q;
    keys.add = v.add = true;
    v.dy = dv;
    nn_at(at->nn, "blocks.%zu.self_attn", at->layer);
    if (gated_back(at, GATE_ATTENTION, w->d_narrow, err) || block_linear_back(at, WAN_O, out, err) ||
        nn_attention_back(at->nn, &a, &back, err) || rope(at, dq, true, err) || rope(at, dk, true, err) ||
        head_norm_back(at, &norm_q, dq, w->d_narrow, err) || block_linear_back(at, WAN_Q, q, err) ||
        head_norm_back(at, &norm_k, dk, w->d_narrow, err) || block_linear_back(at, WAN_K, keys, err) ||
        block_linear_back(at, WAN_V, v, err))
        return -1;
    return first ? 0 : modulated_back(at, &norm, true, err);
}

/* ---- what stands before and behind the blocks ---- */

static int embed_time(const struct at *at, struct cairn_error *err)
{
    const struct wan *m = at->m;
    struct wan_work *w = at->w;
    const struct {
        const struct wan_linear *l;
        const float *x;
        float *y;
        bool silu;
    } steps[] = {
        { &m->time[0], at->slot->sinusoids, w->time_inner, false },
        { &m->time[1], w->time_inner, w->time, true },
        { &m->time_projection, w->time, w->time_projected, true },
    };
    nn_at(at->nn, "time_embedding");
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        void *matrix_at;
        if (matrix(at, steps[i].l->w, &matrix_at, err))
            return -1;
        struct nn_small_linear args = {
            .x = steps[i].x,
            .w = matrix_at,
            .bias = vector(at, steps[i].l->b),
            .y = steps[i].y,
            .rows = wan_sets(at->slot),
            .in = steps[i].l->in,
            .out = steps[i].l->out,
            .silu = steps[i].silu,
        };
        if (nn_small_linear(at->nn, &args, err))
            return -1;
    }
    return 0;
}

static int embed_text(const struct at *at, struct cairn_error *err)
{
    const struct wan *m = at->m;
    size_t rows = at->slot->samples * m->shape.text_rows;
    nn_at(at->nn, "text_embedding");
    return linear(at, &m->text[0], at->slot->text, at->w->text_inner, rows, err) ||
                   nn_gelu(at->nn, at->w->text_inner, at->w->text_inner, rows * m->shape.width, err) ||
                   linear(at, &m->text[1], at->w->text_inner, at->w->text, rows, err)
               ? -1
               : 0;
}

static int clip_norm(const struct at *at, int which, const void *x, void *y, size_t columns,
                     struct cairn_error *err)
{
    const struct wan_image *i = &at->m->image;
    struct nn_norm args = {
        .kind = NN_NORM_LAYER,
        .x = x,
        .y = y,
        .w = vector(at, i->norm_w[which]),
        .b = vector(at, i->norm_b[which]),
        .mean = at->w->clip_mean,
        .rstd = at->w->clip_rstd,
        .rows = at->slot->samples * at->m->shape.clip_rows,
        .columns = columns,
        .epsilon = clip_epsilon,
    };
    return nn_norm(at->nn, &args, err);
}

static int embed_image(const struct at *at, struct cairn_error *err)
{
    const struct wan *m = at->m;
    struct wan_work *w = at->w;
    size_t columns = m->shape.clip_width, rows = at->slot->samples * m->shape.clip_rows;
    void *wide = w->saved[0].image.k_raw; /* not in use yet */
    nn_at(at->nn, "img_emb");
    return clip_norm(at, 0, at->slot->clip, w->clip_norm, columns, err) ||
                   linear(at, &m->image.linear[0], w->clip_norm, w->clip_inner, rows, err) ||
                   nn_gelu_erf(at->nn, w->clip_inner, w->clip_inner, rows * columns, err) ||
                   linear(at, &m->image.linear[1], w->clip_inner, wide, rows, err) ||
                   clip_norm(at, 1, wide, w->clip, m->shape.width, err)
               ? -1
               : 0;
}

/* The patches; where the stream is f32, by way of `branch`. */
static int embed_patches(const struct at *at, struct cairn_error *err)
{
    const struct wan *m = at->m;
    struct wan_work *w = at->w;
    const struct wan_size *size = &at->slot->size;
    void *matrix_at;
    if (matrix(at, m->patch.w, &matrix_at, err))
        return -1;
    struct nn_patches args = {
        .x = at->slot->x,
        .w = matrix_at,
        .bias = vector(at, m->patch.b),
        .y = w->wide ? w->branch : w->x[0],
        .scratch = w->patches,
        .samples = at->slot->samples,
        .channels = m->shape.in,
        .out = m->shape.width,
        .in = { (k_i64)size->frames, (k_i64)size->height, (k_i64)size->width },
        .patch = { 1, 2, 2 },
    };
    struct nn_gate widen = {
        .y = w->x[0], .z = w->branch, .rows = at->rows, .columns = m->shape.width, .wide = true
    };
    nn_at(at->nn, "patch_embedding");
    if (nn_patches(at->nn, &args, err))
        return -1;
    return w->wide ? nn_gate(at->nn, &widen, err) : 0;
}

static struct modulated head_norm_of(const struct at *at, void *y)
{
    struct wan_work *w = at->w;
    return (
        struct modulated){ w->x[at->m->shape.layers], y, w->last_mean, w->last_rstd, SHIFT_HEAD, SCALE_HEAD };
}

static int head(const struct at *at, struct cairn_error *err)
{
    struct modulated norm = head_norm_of(at, at->w->branch);
    nn_at(at->nn, "head");
    return modulate_head(at, err) || modulated_forward(at, &norm, err) ||
                   linear(at, &at->m->head, at->w->branch, at->w->y, at->rows, err)
               ? -1
               : 0;
}

/* The loss of each sample; with gradients, that of y comes to be in y.  Clean frames have none. */
static int square_error(const struct at *at, struct cairn_error *err)
{
    struct wan_work *w = at->w;
    const struct wan_slot *s = at->slot;
    size_t columns = at->m->shape.out * WAN_PATCH, n = (s->tokens - s->clean_rows) * columns;
    size_t clean_bytes = s->clean_rows * columns * storage_size(at->nn->storage);
    for (size_t i = 0; i < s->samples; i++) {
        size_t first = i * s->tokens + s->clean_rows;
        void *y = row_at(at, w->y, first, columns);
        struct nn_square_error args = {
            .parts = s->parts + i * nn_square_error_parts(n),
            .dx = at->grads ? y : NULL,
            .x = y,
            .target = s->target + first * columns,
            .samples = 1,
            .n = n,
            .scale = at->pass->scale * s->weights[i] / (float)n,
        };
        if (nn_square_error(at->nn, &args, err))
            return -1;
        if (at->grads && clean_bytes &&
            gpu_clear(at->nn->g, at->nn->stream, row_at(at, w->y, i * s->tokens, columns), clean_bytes, err))
            return -1;
    }
    return 0;
}

static int head_back(const struct at *at, struct cairn_error *err)
{
    struct modulated norm = head_norm_of(at, at->w->d_narrow);
    void *matrix_at;
    if (matrix(at, at->m->head.w, &matrix_at, err))
        return -1;
    struct nn_linear_back args = {
        .dy = at->w->y,
        .w = matrix_at,
        .dx = at->w->d_narrow,
        .rows = at->rows,
        .in = at->m->head.in,
        .out = at->m->head.out,
    };
    return nn_linear_back(at->nn, &args, err) || modulated_back(at, &norm, false, err) ? -1 : 0;
}

/* ---- passes ---- */

/* The next block is uploaded while one is computed. */
static int forward(struct at *at, struct cairn_error *err)
{
    size_t layers = at->m->shape.layers;
    if (wan_need_rope(at->w, at->slot->size, err) || embed_time(at, err) || embed_text(at, err) ||
        (at->m->shape.clip_width && embed_image(at, err)) || embed_patches(at, err))
        return -1;
    for (size_t i = 0; i < layers; i++) {
        at->layer = i;
        if (weights_need(at->weights, at->nn->stream, i, i + 1 < layers ? i + 1 : i, err) ||
            block_forward(at, err) || weights_passed(at->weights, at->nn->stream, i, err))
            return -1;
    }
    return head(at, err);
}

static int backward(struct at *at, struct cairn_error *err)
{
    if (head_back(at, err))
        return -1;
    for (size_t i = at->m->shape.layers; i-- > 0;) {
        bool again = at->w->o.recompute && i + 1 < at->m->shape.layers; /* the last block's are still valid */
        at->layer = i;
        if (weights_need(at->weights, at->nn->stream, i, i ? i - 1 : 0, err) ||
            (again ? block_inside(at, err) : modulate_block(at, err)) || ffn_back(at, err) ||
            cross_attention_back(at, err) || self_attention_back(at, err) ||
            weights_passed(at->weights, at->nn->stream, i, err))
            return -1;
    }
    return 0;
}

int wan_run(struct work *work, const struct model_pass *p, const struct weights *grads,
            struct cairn_error *err)
{
    struct wan_work *w = (struct wan_work *)work;
    const struct wan_slot *s = &w->slots[p->slot];
    assert(!grads || (w->o.train && s->has_target));
    struct at at = {
        .w = w,
        .m = w->m,
        .nn = w->m->nn,
        .slot = s,
        .params = &w->m->params[s->expert],
        .weights = &w->m->weights[s->expert],
        .lora = wan_lora_of(w->m, s->expert),
        .pass = p,
        .grads = grads,
        .rows = s->samples * s->tokens,
    };
    if (forward(&at, err) || (s->has_target && square_error(&at, err)))
        return -1;
    return grads ? backward(&at, err) : 0;
}
