/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/wan_at.h"
#include "nn/wan_adapters.h"

/* ---- linears ---- */

int wan_plain_linear(const struct wan_at *at, const struct wan_linear *l, const void *x, void *y, size_t rows,
                     struct cairn_error *err)
{
    void *w;
    if (wan_at_matrix(at, l->w, &w, err))
        return -1;
    struct nn_linear args = {
        .x = x, .w = w, .bias = wan_at_vector(at, l->b), .y = y, .rows = rows, .in = l->in, .out = l->out
    };
    return nn_linear(at->nn, &args, err);
}

static struct nn_drop drop_at(const struct wan_at *at, enum wan_matrix which)
{
    if (!at->pass->learn || !at->m->model.n_loras)
        return (struct nn_drop){ 0 };
    return (struct nn_drop){
        .rate = at->m->loras[at->lora].dropout,
        .seed = at->pass->seed,
        .stream = (at->pass->stream * at->m->shape.layers + at->layer) * WAN_MATRICES + (uint64_t)which,
    };
}

/* A LoRA of scale 0 is left out, so that the base computes the same bits as without one. */
static struct lora_call lora_of(const struct wan_at *at, enum wan_matrix which, const struct nn_drop *drop,
                                const void *x, size_t rows)
{
    static const struct lora_site none = { .n = 0 };
    const struct lora *lora = &at->m->loras[at->lora];
    return (struct lora_call){
        .lora = lora,
        .site = lora->scale == 0 ? &none : &wan_at_block(at)->lora[at->lora][which],
        .scratch = &at->w->lora,
        .drop = drop,
        .x = x,
        .rows = rows,
        .in = wan_at_block(at)->linear[which].in,
        .out = wan_at_block(at)->linear[which].out,
    };
}

/* ---- LoRAs that are not trained ---- */

static bool has_adapter(const struct wan_at *at, enum wan_matrix which)
{
    for (size_t i = 0; i < wan_adapters_count(at->m); i++) {
        const struct wan_adapter *a = wan_adapters_at(at->m, i);
        if (a->base == at->slot->expert && a->sites[at->layer][which].n)
            return true;
    }
    return false;
}

/* After the trained LoRA's part, whose call this was. */
static int adapters_forward(const struct wan_at *at, enum wan_matrix which, struct lora_call call, void *y,
                            struct cairn_error *err)
{
    static const struct nn_drop none = { 0 };
    call.first = !call.site->n;
    call.drop = &none;
    for (size_t i = 0; i < wan_adapters_count(at->m); i++) {
        const struct wan_adapter *a = wan_adapters_at(at->m, i);
        call.lora = &a->lora;
        call.site = &a->sites[at->layer][which];
        if (a->base != at->slot->expert || !call.site->n)
            continue;
        if (lora_forward(at->nn, &call, y, err))
            return -1;
        call.first = false;
    }
    return 0;
}

int wan_block_linear(const struct wan_at *at, enum wan_matrix which, struct wan_linear_call io,
                     struct cairn_error *err)
{
    const struct wan_linear *l = &wan_at_block(at)->linear[which];
    struct nn_drop drop = drop_at(at, which);
    struct lora_call lora = lora_of(at, which, &drop, io.x, io.rows);
    bool has_lora = lora.site->n || has_adapter(at, which);
    bool gelu_after = io.before && has_lora; /* what LoRA adds goes through GELU too */
    void *w;
    struct nn_linear args = {
        .x = io.x,
        .bias = wan_at_vector(at, l->b),
        .y = gelu_after ? io.before : io.y,
        .before = gelu_after ? NULL : io.before,
        .rows = io.rows,
        .in = l->in,
        .out = l->out,
        .add = has_lora,
    };
    lora.first = true;
    if (wan_at_matrix(at, l->w, &w, err) || lora_forward(at->nn, &lora, args.y, err) ||
        adapters_forward(at, which, lora, args.y, err))
        return -1;
    args.w = w;
    if (nn_linear(at->nn, &args, err))
        return -1;
    return gelu_after ? nn_gelu(at->nn, io.y, io.before, io.rows * l->out, err) : 0;
}

int wan_block_linear_back(const struct wan_at *at, enum wan_matrix which, struct wan_linear_back io,
                          struct cairn_error *err)
{
    const struct wan_linear *l = &wan_at_block(at)->linear[which];
    struct nn_drop drop = drop_at(at, which);
    struct lora_call lora = lora_of(at, which, &drop, io.x, io.rows);
    bool gelu_after = io.before && lora.site->n;
    void *w;
    lora.first = !io.add;
    if (lora_back(at->nn, &lora, io.dy, io.dx, at->grads, err))
        return -1;
    if (!io.dx)
        return 0;
    if (wan_at_matrix(at, l->w, &w, err))
        return -1;
    struct nn_linear_back args = {
        .dy = io.dy,
        .w = w,
        .slope_of = gelu_after ? NULL : io.before,
        .dx = io.dx,
        .rows = io.rows,
        .in = l->in,
        .out = l->out,
        .add = io.add || lora.site->n,
    };
    if (nn_linear_back(at->nn, &args, err))
        return -1;
    return gelu_after ? nn_gelu_back(at->nn, io.dx, io.dx, io.before, io.rows * l->in, err) : 0;
}

/* ---- modulation ---- */

static const float *modulation(const struct wan_at *at, int part, size_t set)
{
    return at->w->modulation + ((size_t)part * wan_sets(at->slot) + set) * at->m->shape.width;
}

int wan_modulate_block(const struct wan_at *at, struct cairn_error *err)
{
    struct nn_modulation args = {
        .y = at->w->modulation,
        .x = wan_at_vector(at, wan_at_block(at)->modulation),
        .add = at->w->time_projected,
        .sets = wan_sets(at->slot),
        .parts = WAN_MODULATIONS,
        .add_parts = WAN_MODULATIONS,
        .columns = at->m->shape.width,
    };
    return nn_modulation(at->nn, &args, err);
}

int wan_modulate_head(const struct wan_at *at, struct cairn_error *err)
{
    struct nn_modulation args = {
        .y = at->w->modulation,
        .x = wan_at_vector(at, at->m->head_modulation),
        .add = at->w->time,
        .sets = wan_sets(at->slot),
        .parts = WAN_HEAD_MODULATIONS,
        .add_parts = 1,
        .columns = at->m->shape.width,
    };
    return nn_modulation(at->nn, &args, err);
}

static struct nn_norm modulated_norm(const struct wan_at *at, const struct wan_modulated *n,
                                     struct wan_segment segment)
{
    return (struct nn_norm){
        .kind = NN_NORM_LAYER,
        .x = wan_at_stream_row(at, n->x, segment.first),
        .y = wan_at_row(at, n->y, segment.first, at->m->shape.width),
        .w = modulation(at, n->scale, segment.set),
        .b = modulation(at, n->shift, segment.set),
        .mean = n->mean + segment.first,
        .rstd = n->rstd + segment.first,
        .rows = segment.rows,
        .columns = at->m->shape.width,
        .rows_per_w = segment.rows_per_set,
        .epsilon = WAN_EPSILON,
        .w_plus = 1,
        .wide = at->w->f32_stream,
    };
}

int wan_modulated_forward(const struct wan_at *at, const struct wan_modulated *n, struct cairn_error *err)
{
    for (size_t i = 0; i < wan_segments(at->slot); i++) {
        struct nn_norm norm = modulated_norm(at, n, wan_segment_at(at->slot, i));
        if (nn_norm(at->nn, &norm, err))
            return -1;
    }
    return 0;
}

int wan_modulated_back(const struct wan_at *at, const struct wan_modulated *n, bool add,
                       struct cairn_error *err)
{
    for (size_t i = 0; i < wan_segments(at->slot); i++) {
        struct wan_segment segment = wan_segment_at(at->slot, i);
        struct nn_norm norm = modulated_norm(at, n, segment);
        struct nn_norm_back back = { .dy = norm.y,
                                     .dx = wan_at_stream_row(at, at->w->dx, segment.first),
                                     .add = add };
        if (nn_norm_back(at->nn, &norm, &back, err))
            return -1;
    }
    return 0;
}

int wan_gated(const struct wan_at *at, int gate, const void *x, const void *z, void *y,
              struct cairn_error *err)
{
    for (size_t i = 0; i < wan_segments(at->slot); i++) {
        struct wan_segment segment = wan_segment_at(at->slot, i);
        struct nn_gate args = {
            .y = wan_at_stream_row(at, y, segment.first),
            .x = wan_at_stream_row(at, x, segment.first),
            .z = wan_at_row(at, z, segment.first, at->m->shape.width),
            .gate = modulation(at, gate, segment.set),
            .rows = segment.rows,
            .columns = at->m->shape.width,
            .rows_per_gate = segment.rows_per_set,
            .wide = at->w->f32_stream,
        };
        if (nn_gate(at->nn, &args, err))
            return -1;
    }
    return 0;
}

int wan_gated_back(const struct wan_at *at, int gate, void *dz, struct cairn_error *err)
{
    for (size_t i = 0; i < wan_segments(at->slot); i++) {
        struct wan_segment segment = wan_segment_at(at->slot, i);
        struct nn_gate args = {
            .gate = modulation(at, gate, segment.set),
            .rows = segment.rows,
            .columns = at->m->shape.width,
            .rows_per_gate = segment.rows_per_set,
            .wide = at->w->f32_stream,
        };
        struct nn_gate_back back = {
            .dy = wan_at_stream_row(at, at->w->dx, segment.first),
            .dz = wan_at_row(at, dz, segment.first, at->m->shape.width),
        };
        if (nn_gate_back(at->nn, &args, &back, err))
            return -1;
    }
    return 0;
}
