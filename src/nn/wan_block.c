/* SPDX-License-Identifier: Apache-2.0
 * A block of the Wan transformer, forward and backward. */
#include "nn/wan_at.h"

/* ---- attention ---- */

/* The RMS norm of all heads of q or k together. */
static struct nn_norm head_norm(const struct wan_at *at, size_t weight, const void *x, void *y, float *rstd,
                                size_t rows)
{
    return (struct nn_norm){
        .kind = NN_NORM_RMS,
        .x = x,
        .y = y,
        .w = wan_at_vector(at, weight),
        .rstd = rstd,
        .rows = rows,
        .columns = at->m->shape.width,
        .epsilon = WAN_EPSILON,
    };
}

static int head_norm_back(const struct wan_at *at, const struct nn_norm *n, const void *dy, void *dx,
                          struct cairn_error *err)
{
    struct nn_norm_back back = { .dy = dy, .dx = dx };
    return nn_norm_back(at->nn, n, &back, err);
}

static struct nn_heads heads_of(const struct wan_at *at, void *x, size_t tokens)
{
    return nn_heads_in_rows(x, tokens, at->m->shape.width, wan_head_size(&at->m->shape));
}

static struct nn_attention attention_of(const struct wan_at *at, void *q, const struct wan_attention *a,
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
static int rope(const struct wan_at *at, void *x, bool back, struct cairn_error *err)
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

static struct cross cross_text(const struct wan_at *at)
{
    return (struct cross){ &wan_at_saved(at)->text,        WAN_CROSS_K, WAN_CROSS_V,
                           wan_at_block(at)->cross_norm_k, at->w->text, at->m->shape.text_rows };
}

static struct cross cross_image(const struct wan_at *at)
{
    return (struct cross){ &wan_at_saved(at)->image,           WAN_CROSS_K_IMG, WAN_CROSS_V_IMG,
                           wan_at_block(at)->cross_norm_k_img, at->w->clip,     at->m->shape.clip_rows };
}

static int cross_forward(const struct wan_at *at, const struct cross *c, struct cairn_error *err)
{
    size_t rows = at->slot->samples * c->keys;
    struct nn_norm norm = head_norm(at, c->norm_k, c->a->k_raw, c->a->k, c->a->k_rstd, rows);
    struct nn_attention a = attention_of(at, wan_at_saved(at)->cross_q, c->a, c->keys);
    return wan_block_linear(at, c->k, (struct wan_linear_call){ .x = c->x, .y = c->a->k_raw, .rows = rows },
                            err) ||
                   nn_norm(at->nn, &norm, err) ||
                   wan_block_linear(at, c->v,
                                    (struct wan_linear_call){ .x = c->x, .y = c->a->v, .rows = rows }, err) ||
                   nn_attention(at->nn, &a, err)
               ? -1
               : 0;
}

/* From d_narrow, the gradient of the output, to that of q; the features have none. */
static int cross_back(const struct wan_at *at, const struct cross *c, void *dq, struct cairn_error *err)
{
    const struct wan_work *w = at->w;
    size_t rows = at->slot->samples * c->keys;
    struct nn_norm norm = head_norm(at, c->norm_k, c->a->k_raw, c->a->k, c->a->k_rstd, rows);
    struct nn_attention a = attention_of(at, wan_at_saved(at)->cross_q, c->a, c->keys);
    struct nn_attention_back back = {
        .d_o = heads_of(at, w->d_narrow, at->slot->tokens),
        .dq = heads_of(at, dq, at->slot->tokens),
        .dk = heads_of(at, w->d_keys, c->keys),
        .dv = heads_of(at, w->d_values, c->keys),
        .delta = w->delta,
    };
    struct wan_linear_back k = { .dy = w->d_keys_raw, .x = c->x, .rows = rows };
    struct wan_linear_back v = { .dy = w->d_values, .x = c->x, .rows = rows };
    return nn_attention_back(at->nn, &a, &back, err) ||
                   head_norm_back(at, &norm, w->d_keys, w->d_keys_raw, err) ||
                   wan_block_linear_back(at, c->k, k, err) || wan_block_linear_back(at, c->v, v, err)
               ? -1
               : 0;
}

/* ---- a block, forward ---- */

static struct wan_modulated first_norm(const struct wan_at *at, void *y)
{
    const struct wan_activations *k = wan_at_saved(at);
    return (struct wan_modulated){ at->w->x[at->layer], y, k->mean[0], k->rstd[0], WAN_SHIFT_ATTENTION,
                                   WAN_SCALE_ATTENTION };
}

static struct wan_modulated ffn_norm(const struct wan_at *at, void *y)
{
    const struct wan_activations *k = wan_at_saved(at);
    return (struct wan_modulated){ k->x2, y, k->mean[2], k->rstd[2], WAN_SHIFT_FFN, WAN_SCALE_FFN };
}

static struct nn_norm cross_norm(const struct wan_at *at)
{
    const struct wan_activations *k = wan_at_saved(at);
    return (struct nn_norm){
        .kind = NN_NORM_LAYER,
        .x = k->x1,
        .y = k->norm3,
        .w = wan_at_vector(at, wan_at_block(at)->norm3_w),
        .b = wan_at_vector(at, wan_at_block(at)->norm3_b),
        .mean = k->mean[1],
        .rstd = k->rstd[1],
        .rows = at->rows,
        .columns = at->m->shape.width,
        .epsilon = WAN_EPSILON,
        .wide = at->w->f32_stream,
    };
}

static int self_attention(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan_activations *k = wan_at_saved(at);
    const struct wan_block *b = wan_at_block(at);
    struct wan_modulated norm = first_norm(at, k->norm1);
    struct nn_norm norm_q = head_norm(at, b->norm_q, k->q_raw, k->q, k->q_rstd, at->rows);
    struct nn_norm norm_k = head_norm(at, b->norm_k, k->self.k_raw, k->self.k, k->self.k_rstd, at->rows);
    struct nn_attention a = attention_of(at, k->q, &k->self, at->slot->tokens);
    struct wan_linear_call q = { .x = k->norm1, .y = k->q_raw, .rows = at->rows }, keys = q, v = q;
    struct wan_linear_call out = { .x = k->self.o, .y = at->w->branch, .rows = at->rows };
    keys.y = k->self.k_raw;
    v.y = k->self.v;
    nn_at(at->nn, "blocks.%zu.self_attn", at->layer);
    return wan_modulated_forward(at, &norm, err) || wan_block_linear(at, WAN_Q, q, err) ||
                   nn_norm(at->nn, &norm_q, err) || rope(at, k->q, false, err) ||
                   wan_block_linear(at, WAN_K, keys, err) || nn_norm(at->nn, &norm_k, err) ||
                   rope(at, k->self.k, false, err) || wan_block_linear(at, WAN_V, v, err) ||
                   nn_attention(at->nn, &a, err) || wan_block_linear(at, WAN_O, out, err) ||
                   wan_gated(at, WAN_GATE_ATTENTION, at->w->x[at->layer], at->w->branch, k->x1, err)
               ? -1
               : 0;
}

/* x2 = x1 + the linear of o. */
static int add_cross(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan_activations *k = wan_at_saved(at);
    struct wan_linear_call out = { .x = k->cross_o, .y = at->w->branch, .rows = at->rows };
    struct nn_gate add = {
        .y = k->x2,
        .x = k->x1,
        .z = at->w->branch,
        .rows = at->rows,
        .columns = at->m->shape.width,
        .wide = at->w->f32_stream,
    };
    return wan_block_linear(at, WAN_CROSS_O, out, err) || nn_gate(at->nn, &add, err) ? -1 : 0;
}

static int cross_attention(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan_activations *k = wan_at_saved(at);
    const struct wan_block *b = wan_at_block(at);
    struct cross text = cross_text(at), image = cross_image(at);
    struct nn_norm norm = cross_norm(at);
    struct nn_norm norm_q =
        head_norm(at, b->cross_norm_q, k->cross_q_raw, k->cross_q, k->cross_q_rstd, at->rows);
    struct wan_linear_call q = { .x = k->norm3, .y = k->cross_q_raw, .rows = at->rows };
    size_t n = at->rows * at->m->shape.width;
    nn_at(at->nn, "blocks.%zu.cross_attn", at->layer);
    if (nn_norm(at->nn, &norm, err) || wan_block_linear(at, WAN_CROSS_Q, q, err) ||
        nn_norm(at->nn, &norm_q, err) || cross_forward(at, &text, err))
        return -1;
    if (at->m->shape.clip_width &&
        (cross_forward(at, &image, err) || nn_add(at->nn, k->cross_o, k->text.o, k->image.o, n, err)))
        return -1;
    return add_cross(at, err);
}

int wan_block_inside(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan_activations *k = wan_at_saved(at);
    struct wan_modulated norm = ffn_norm(at, k->norm2);
    struct wan_linear_call fc = { .x = k->norm2, .y = k->act, .before = k->fc, .rows = at->rows };
    if (wan_modulate_block(at, err) || self_attention(at, err) || cross_attention(at, err))
        return -1;
    nn_at(at->nn, "blocks.%zu.ffn", at->layer);
    return wan_modulated_forward(at, &norm, err) || wan_block_linear(at, WAN_FFN_IN, fc, err) ? -1 : 0;
}

int wan_block_forward(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan_activations *k = wan_at_saved(at);
    struct wan_linear_call out = { .x = k->act, .y = at->w->branch, .rows = at->rows };
    return wan_block_inside(at, err) || wan_block_linear(at, WAN_FFN_OUT, out, err) ||
                   wan_gated(at, WAN_GATE_FFN, k->x2, at->w->branch, at->w->x[at->layer + 1], err)
               ? -1
               : 0;
}

/* ---- a block, backward: w->dx is the gradient of its output, then of its input ---- */

static int ffn_back(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan_work *w = at->w;
    const struct wan_activations *k = wan_at_saved(at);
    struct wan_modulated norm = ffn_norm(at, w->d_narrow);
    struct wan_linear_back out = {
        .dy = w->d_narrow, .x = k->act, .before = k->fc, .dx = w->d_ffn, .rows = at->rows
    };
    struct wan_linear_back fc = { .dy = w->d_ffn, .x = k->norm2, .dx = w->d_narrow, .rows = at->rows };
    nn_at(at->nn, "blocks.%zu.ffn", at->layer);
    return wan_gated_back(at, WAN_GATE_FFN, w->d_narrow, err) ||
                   wan_block_linear_back(at, WAN_FFN_OUT, out, err) ||
                   wan_block_linear_back(at, WAN_FFN_IN, fc, err) || wan_modulated_back(at, &norm, true, err)
               ? -1
               : 0;
}

/* The gradient of what cross attention added, in the storage format: *d. */
static int cross_gradient(const struct wan_at *at, const void **d, struct cairn_error *err)
{
    struct nn_gate gate = { .rows = at->rows, .columns = at->m->shape.width, .wide = true };
    struct nn_gate_back back = { .dy = at->w->dx, .dz = at->w->branch };
    *d = at->w->f32_stream ? at->w->branch : at->w->dx;
    return at->w->f32_stream ? nn_gate_back(at->nn, &gate, &back, err) : 0;
}

static int cross_attention_back(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan_work *w = at->w;
    const struct wan_activations *k = wan_at_saved(at);
    const struct wan_block *b = wan_at_block(at);
    struct cross text = cross_text(at), image = cross_image(at);
    struct nn_norm norm_q =
        head_norm(at, b->cross_norm_q, k->cross_q_raw, k->cross_q, k->cross_q_rstd, at->rows);
    struct nn_norm norm = cross_norm(at);
    struct nn_norm_back norm_back = { .dy = w->d_narrow, .dx = w->dx, .add = true };
    size_t n = at->rows * at->m->shape.width;
    void *dq = w->d_narrow2, *dq_image = w->d_ffn;
    const void *d;
    nn_at(at->nn, "blocks.%zu.cross_attn", at->layer);
    if (cross_gradient(at, &d, err))
        return -1;
    struct wan_linear_back out = { .dy = d, .x = k->cross_o, .dx = w->d_narrow, .rows = at->rows };
    struct wan_linear_back q = { .dy = w->d_ffn, .x = k->norm3, .dx = w->d_narrow, .rows = at->rows };
    if (wan_block_linear_back(at, WAN_CROSS_O, out, err) || cross_back(at, &text, dq, err))
        return -1;
    if (at->m->shape.clip_width &&
        (cross_back(at, &image, dq_image, err) || nn_add(at->nn, dq, dq, dq_image, n, err)))
        return -1;
    return head_norm_back(at, &norm_q, dq, w->d_ffn, err) || wan_block_linear_back(at, WAN_CROSS_Q, q, err) ||
                   nn_norm_back(at->nn, &norm, &norm_back, err)
               ? -1
               : 0;
}

/* The gradients of q, k and v lie where the MLP's activations were, which are not needed any more.  The first
 * block's input has no gradient: what makes it is frozen. */
static int self_attention_back(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan_work *w = at->w;
    const struct wan_activations *k = wan_at_saved(at);
    const struct wan_block *b = wan_at_block(at);
    bool first = at->layer == 0;
    void *dq = k->fc, *dk = k->act, *dv = w->d_ffn, *d_norm = first ? NULL : w->d_narrow2;
    size_t tokens = at->slot->tokens;
    struct nn_norm norm_q = head_norm(at, b->norm_q, k->q_raw, k->q, k->q_rstd, at->rows);
    struct nn_norm norm_k = head_norm(at, b->norm_k, k->self.k_raw, k->self.k, k->self.k_rstd, at->rows);
    struct wan_modulated norm = first_norm(at, d_norm);
    struct nn_attention a = attention_of(at, k->q, &k->self, tokens);
    struct nn_attention_back back = {
        .d_o = heads_of(at, w->d_narrow2, tokens),
        .dq = heads_of(at, dq, tokens),
        .dk = heads_of(at, dk, tokens),
        .dv = heads_of(at, dv, tokens),
        .delta = w->delta,
    };
    struct wan_linear_back out = { .dy = w->d_narrow, .x = k->self.o, .dx = w->d_narrow2, .rows = at->rows };
    struct wan_linear_back q = { .dy = w->d_narrow, .x = k->norm1, .dx = d_norm, .rows = at->rows }, keys = q,
                           v = q;
    keys.add = v.add = true;
    v.dy = dv;
    nn_at(at->nn, "blocks.%zu.self_attn", at->layer);
    if (wan_gated_back(at, WAN_GATE_ATTENTION, w->d_narrow, err) ||
        wan_block_linear_back(at, WAN_O, out, err) || nn_attention_back(at->nn, &a, &back, err) ||
        rope(at, dq, true, err) || rope(at, dk, true, err) ||
        head_norm_back(at, &norm_q, dq, w->d_narrow, err) || wan_block_linear_back(at, WAN_Q, q, err) ||
        head_norm_back(at, &norm_k, dk, w->d_narrow, err) || wan_block_linear_back(at, WAN_K, keys, err) ||
        wan_block_linear_back(at, WAN_V, v, err))
        return -1;
    return first ? 0 : wan_modulated_back(at, &norm, true, err);
}

int wan_block_back(const struct wan_at *at, struct cairn_error *err)
{
    return ffn_back(at, err) || cross_attention_back(at, err) || self_attention_back(at, err) ? -1 : 0;
}
