/* SPDX-License-Identifier: Apache-2.0
 * A pass through the Wan transformer: what stands before and behind the blocks, the loss, and the order of all. */
#include "nn/wan_at.h"
#include <assert.h>

static const float clip_epsilon = 1e-5f;

/* ---- before and behind the blocks ---- */

static int embed_time(const struct wan_at *at, struct cairn_error *err)
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
        if (wan_at_matrix(at, steps[i].l->w, &matrix_at, err))
            return -1;
        struct nn_small_linear args = {
            .x = steps[i].x,
            .w = matrix_at,
            .bias = wan_at_vector(at, steps[i].l->b),
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

static int embed_text(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan *m = at->m;
    size_t rows = at->slot->samples * m->shape.text_rows;
    nn_at(at->nn, "text_embedding");
    return wan_plain_linear(at, &m->text[0], at->slot->text, at->w->text_inner, rows, err) ||
                   nn_gelu(at->nn, at->w->text_inner, at->w->text_inner, rows * m->shape.width, err) ||
                   wan_plain_linear(at, &m->text[1], at->w->text_inner, at->w->text, rows, err)
               ? -1
               : 0;
}

static int clip_norm(const struct wan_at *at, int which, const void *x, void *y, size_t columns,
                     struct cairn_error *err)
{
    const struct wan_image *i = &at->m->image;
    struct nn_norm args = {
        .kind = NN_NORM_LAYER,
        .x = x,
        .y = y,
        .w = wan_at_vector(at, i->norm_w[which]),
        .b = wan_at_vector(at, i->norm_b[which]),
        .mean = at->w->clip_mean,
        .rstd = at->w->clip_rstd,
        .rows = at->slot->samples * at->m->shape.clip_rows,
        .columns = columns,
        .epsilon = clip_epsilon,
    };
    return nn_norm(at->nn, &args, err);
}

static int embed_image(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan *m = at->m;
    struct wan_work *w = at->w;
    size_t columns = m->shape.clip_width, rows = at->slot->samples * m->shape.clip_rows;
    void *projected = w->saved[0].image.k_raw; /* not in use yet */
    nn_at(at->nn, "img_emb");
    return clip_norm(at, 0, at->slot->clip, w->clip_norm, columns, err) ||
                   wan_plain_linear(at, &m->image.linear[0], w->clip_norm, w->clip_inner, rows, err) ||
                   nn_gelu_erf(at->nn, w->clip_inner, w->clip_inner, rows * columns, err) ||
                   wan_plain_linear(at, &m->image.linear[1], w->clip_inner, projected, rows, err) ||
                   clip_norm(at, 1, projected, w->clip, m->shape.width, err)
               ? -1
               : 0;
}

/* The patches; where the stream is f32, by way of `branch`. */
static int embed_patches(const struct wan_at *at, struct cairn_error *err)
{
    const struct wan *m = at->m;
    struct wan_work *w = at->w;
    const struct wan_size *size = &at->slot->size;
    void *matrix_at;
    if (wan_at_matrix(at, m->patch.w, &matrix_at, err))
        return -1;
    struct nn_patches args = {
        .x = at->slot->x,
        .w = matrix_at,
        .bias = wan_at_vector(at, m->patch.b),
        .y = w->f32_stream ? w->branch : w->x[0],
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
    return w->f32_stream ? nn_gate(at->nn, &widen, err) : 0;
}

static struct wan_modulated head_norm_of(const struct wan_at *at, void *y)
{
    struct wan_work *w = at->w;
    return (struct wan_modulated){
        w->x[at->m->shape.layers], y, w->last_mean, w->last_rstd, WAN_SHIFT_HEAD, WAN_SCALE_HEAD
    };
}

static int head(const struct wan_at *at, struct cairn_error *err)
{
    struct wan_modulated norm = head_norm_of(at, at->w->branch);
    nn_at(at->nn, "head");
    return wan_modulate_head(at, err) || wan_modulated_forward(at, &norm, err) ||
                   wan_plain_linear(at, &at->m->head, at->w->branch, at->w->y, at->rows, err)
               ? -1
               : 0;
}

/* The loss of each sample; with gradients, that of y comes to be in y.  Clean frames have none. */
static int square_error(const struct wan_at *at, struct cairn_error *err)
{
    struct wan_work *w = at->w;
    const struct wan_slot *s = at->slot;
    size_t columns = at->m->shape.out * WAN_PATCH, n = (s->tokens - s->clean_rows) * columns;
    size_t clean_bytes = s->clean_rows * columns * storage_size(at->nn->storage);
    for (size_t i = 0; i < s->samples; i++) {
        size_t first = i * s->tokens + s->clean_rows;
        void *y = wan_at_row(at, w->y, first, columns);
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
            gpu_clear(at->nn->g, at->nn->stream, wan_at_row(at, w->y, i * s->tokens, columns), clean_bytes,
                      err))
            return -1;
    }
    return 0;
}

static int head_back(const struct wan_at *at, struct cairn_error *err)
{
    struct wan_modulated norm = head_norm_of(at, at->w->d_narrow);
    void *matrix_at;
    if (wan_at_matrix(at, at->m->head.w, &matrix_at, err))
        return -1;
    struct nn_linear_back args = {
        .dy = at->w->y,
        .w = matrix_at,
        .dx = at->w->d_narrow,
        .rows = at->rows,
        .in = at->m->head.in,
        .out = at->m->head.out,
    };
    return nn_linear_back(at->nn, &args, err) || wan_modulated_back(at, &norm, false, err) ? -1 : 0;
}

/* ---- passes ---- */

/* The next block is uploaded while one is computed. */
static int forward(struct wan_at *at, struct cairn_error *err)
{
    size_t layers = at->m->shape.layers;
    struct gpu_stream *stream = at->nn->stream;
    struct save_ring *ring = &at->w->ring;
    if (save_ring_first(ring, wan_at_stream_bytes(at, at->rows), stream, err) ||
        wan_need_rope(at->w, at->slot->size, err) || embed_time(at, err) || embed_text(at, err) ||
        (at->m->shape.clip_width && embed_image(at, err)) || embed_patches(at, err))
        return -1;
    for (size_t i = 0; i < layers; i++) {
        at->layer = i;
        if (weights_need(at->weights, stream, i, i + 1 < layers ? i + 1 : i, err) ||
            save_ring_next(ring, i, stream, err) || wan_block_forward(at, err) ||
            save_ring_save(ring, i, stream, at->grads != NULL, err) ||
            weights_passed(at->weights, stream, i, err))
            return -1;
    }
    return head(at, err);
}

static int backward(struct wan_at *at, struct cairn_error *err)
{
    struct gpu_stream *stream = at->nn->stream;
    struct save_ring *ring = &at->w->ring;
    if (head_back(at, err))
        return -1;
    for (size_t i = at->m->shape.layers; i-- > 0;) {
        bool again = at->w->o.recompute && i + 1 < at->m->shape.layers; /* the last block's are still valid */
        at->layer = i;
        if (weights_need(at->weights, stream, i, i ? i - 1 : 0, err) ||
            save_ring_need(ring, i, stream, err) ||
            (again ? wan_block_inside(at, err) : wan_modulate_block(at, err)) || wan_block_back(at, err) ||
            save_ring_passed(ring, i, stream, err) || weights_passed(at->weights, stream, i, err))
            return -1;
    }
    return 0;
}

int wan_run(struct work *work, const struct model_pass *p, const struct weights *grads,
            struct cairn_error *err)
{
    struct wan_work *w = (struct wan_work *)work;
    const struct wan_slot *s = &w->slots[p->slot];
    assert(!grads || (w->o.train && s->has_target && !w->m->adapters));
    struct wan_at at = {
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
