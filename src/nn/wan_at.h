/* SPDX-License-Identifier: Apache-2.0
 * Where a pass through the Wan transformer is, and its ops: wan_ops.c has linears with their LoRAs and what the
 * time modulates, wan_block.c a block, wan_pass.c the rest.  Where the residual stream is f32, ops that read
 * or write it are told so. */
#ifndef CAIRN_NN_WAN_AT_H
#define CAIRN_NN_WAN_AT_H

#include "nn/wan_inside.h"

#define WAN_EPSILON 1e-6f

/* The six vectors that shift, scale and gate what a block does, and the two of the head. */
enum {
    WAN_SHIFT_ATTENTION,
    WAN_SCALE_ATTENTION,
    WAN_GATE_ATTENTION,
    WAN_SHIFT_FFN,
    WAN_SCALE_FFN,
    WAN_GATE_FFN,
};
enum { WAN_SHIFT_HEAD, WAN_SCALE_HEAD, WAN_HEAD_MODULATIONS };

struct wan_at {
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

static inline const struct wan_block *wan_at_block(const struct wan_at *at)
{
    return &at->m->blocks[at->layer];
}

static inline const struct wan_activations *wan_at_saved(const struct wan_at *at)
{
    return &at->w->saved[at->layer];
}

static inline const float *wan_at_vector(const struct wan_at *at, size_t index)
{
    return weights_vector(at->weights, &at->params->list[index]);
}

static inline int wan_at_matrix(const struct wan_at *at, size_t index, void **out, struct cairn_error *err)
{
    return weights_matrix(at->weights, at->nn->stream, &at->params->list[index], out, err);
}

/* A row of a tensor in the storage format, or of the stream. */
static inline void *wan_at_row(const struct wan_at *at, const void *p, size_t row, size_t columns)
{
    return (char *)p + row * columns * storage_size(at->nn->storage);
}

static inline size_t wan_at_stream_bytes(const struct wan_at *at, size_t rows)
{
    return rows * at->m->shape.width * (at->w->f32_stream ? sizeof(float) : storage_size(at->nn->storage));
}

static inline void *wan_at_stream_row(const struct wan_at *at, const void *p, size_t row)
{
    return (char *)p + wan_at_stream_bytes(at, row);
}

/* ---- wan_ops.c ---- */

/* A linear outside the blocks. */
int wan_plain_linear(const struct wan_at *at, const struct wan_linear *l, const void *x, void *y, size_t rows,
                     struct cairn_error *err);

/* y = x wᵀ + bias with the LoRA's part, through GELU where `before` is given. */
struct wan_linear_call {
    const void *x;
    void *y;
    void *before; /* gets the input of GELU */
    size_t rows;
};
int wan_block_linear(const struct wan_at *at, enum wan_matrix which, struct wan_linear_call io,
                     struct cairn_error *err);

/* From dy to the gradients of the LoRA and, where dx is given, of x. */
struct wan_linear_back {
    const void *dy, *x;
    const void *before; /* where x came out of GELU: the input of GELU, and dx is its gradient */
    void *dx;
    bool add; /* to the contents of dx */
    size_t rows;
};
int wan_block_linear_back(const struct wan_at *at, enum wan_matrix which, struct wan_linear_back io,
                          struct cairn_error *err);

/* What the time makes of this block, and of the head: w->modulation. */
int wan_modulate_block(const struct wan_at *at, struct cairn_error *err);
int wan_modulate_head(const struct wan_at *at, struct cairn_error *err);

/* y = norm(x) (1 + scale) + shift, and back to w->dx.  x and dx are parts of the stream. */
struct wan_modulated {
    const void *x;
    void *y; /* dy on the way back */
    float *mean, *rstd;
    int shift, scale;
};
int wan_modulated_forward(const struct wan_at *at, const struct wan_modulated *n, struct cairn_error *err);
int wan_modulated_back(const struct wan_at *at, const struct wan_modulated *n, bool add,
                       struct cairn_error *err);

/* y = x + gate z, and back: dz = gate dx. */
int wan_gated(const struct wan_at *at, int gate, const void *x, const void *z, void *y,
              struct cairn_error *err);
int wan_gated_back(const struct wan_at *at, int gate, void *dz, struct cairn_error *err);

/* ---- wan_block.c ---- */

/* All of a block but its last linear, so that the backward pass has the input of that. */
int wan_block_inside(const struct wan_at *at, struct cairn_error *err);
int wan_block_forward(const struct wan_at *at, struct cairn_error *err);
/* w->dx is the gradient of its output, then of its input. */
int wan_block_back(const struct wan_at *at, struct cairn_error *err);

#endif
