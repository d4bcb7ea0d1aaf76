/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/nn.h"
#include "gpu/kernels/rope.h"
#include "nn/nn_inside.h"
#include <assert.h>
#include <math.h>

struct nn_heads nn_heads_in_rows(void *at, size_t tokens, size_t row, size_t size)
{
    return (struct nn_heads){
        .at = at,
        .by = { .sample = (k_i64)(tokens * row), .token = (k_i64)row, .head = (k_i64)size },
    };
}

/* ---- attention ---- */

static size_t q_numbers(const struct nn_attention *a)
{
    return a->samples * a->queries * a->heads * a->size;
}

static size_t kv_numbers(const struct nn_attention *a)
{
    return a->samples * a->keys * a->kv_heads * a->size;
}

/* Of both matmuls of a pass.  Where a mask is causal, half of the queries see a key. */
static double attention_flops(const struct nn_attention *a)
{
    double twice_seen = a->causal ? (double)(a->queries + 2 * a->past) : 2.0 * (double)a->keys;
    return 2.0 * (double)(a->samples * a->heads * a->size * a->queries) * twice_seen;
}

/* Where heads end, in elements from their first. */
static size_t extent(const struct nn_attention *a, struct attention_stride by, size_t tokens, size_t heads)
{
    return (a->samples - 1) * (size_t)by.sample + (tokens - 1) * (size_t)by.token +
           (heads - 1) * (size_t)by.head + a->size;
}

/* Outputs that a watcher can read as arrays: each that is packed; or all as one, where they are interleaved
 * and leave no gap, as q, k and v of one projection do. */
static void list_outputs(const struct nn *nn, const struct nn_attention *a, const struct nn_attention_back *b,
                         struct nn_output out[NN_OUTPUTS])
{
    const struct nn_heads *h[NN_OUTPUTS] = { &b->dq, &b->dk, &b->dv };
    const size_t n[NN_OUTPUTS] = { q_numbers(a), kv_numbers(a), kv_numbers(a) };
    const char *first = b->dq.at, *end = first;
    size_t total = 0;
    for (int i = 0; i < NN_OUTPUTS; i++) {
        size_t length = extent(a, h[i]->by, i ? a->keys : a->queries, i ? a->kv_heads : a->heads);
        const char *at = h[i]->at, *stop = at + length * nn_elem_bytes(nn);
        first = at < first ? at : first;
        end = stop > end ? stop : end;
        total += n[i];
        out[i] = (struct nn_output){ length == n[i] ? at : NULL, n[i] };
    }
    if ((size_t)(end - first) != total * nn_elem_bytes(nn))
        return;
    out[0] = (struct nn_output){ first, total };
    out[1] = out[2] = (struct nn_output){ 0 };
}

int nn_attention(struct nn *nn, const struct nn_attention *a, struct cairn_error *err)
{
    struct attention_args args = {
        .o = a->o.at,
        .lse = a->lse,
        .q = a->q.at,
        .k = a->k.at,
        .v = a->v.at,
        .o_by = a->o.by,
        .q_by = a->q.by,
        .k_by = a->k.by,
        .v_by = a->v.by,
        .heads = (k_i64)a->heads,
        .kv_heads = (k_i64)a->kv_heads,
        .queries = (k_i64)a->queries,
        .keys = (k_i64)a->keys,
        .size = (k_i64)a->size,
        .causal = a->causal,
        .causal_shift = (k_i64)a->past,
        .scale = a->scale != 0 ? a->scale : 1.0f / sqrtf((float)a->size),
        .bias = a->bias,
        .bias_span = (k_i64)a->bias_span,
    };
    if (attention_forward(nn->g, nn->stream, nn->storage, (k_i64)a->samples, &args, err))
        return nn_fail_at(nn, "attention", err);
    bool packed = extent(a, a->o.by, a->queries, a->heads) == q_numbers(a);
    struct nn_event e = {
        .op = "attention",
        .out = { { packed ? a->o.at : NULL, q_numbers(a) } },
        .storage = nn->storage,
        .flops = attention_flops(a),
        .bytes = 2.0 * (double)((q_numbers(a) + kv_numbers(a)) * nn_elem_bytes(nn)),
    };
    return nn_report_op(nn, e, err);
}

int nn_attention_back(struct nn *nn, const struct nn_attention *a, const struct nn_attention_back *b,
                      struct cairn_error *err)
{
    assert(!a->bias);
    struct attention_backward_args args = {
        .dq = b->dq.at,
        .dk = b->dk.at,
        .dv = b->dv.at,
        .delta = b->delta,
        .q = a->q.at,
        .k = a->k.at,
        .v = a->v.at,
        .o = a->o.at,
        .d_o = b->d_o.at,
        .lse = a->lse,
        .dq_by = b->dq.by,
        .dk_by = b->dk.by,
        .dv_by = b->dv.by,
        .q_by = a->q.by,
        .k_by = a->k.by,
        .v_by = a->v.by,
        .o_by = a->o.by,
        .d_o_by = b->d_o.by,
        .heads = (k_i64)a->heads,
        .kv_heads = (k_i64)a->kv_heads,
        .queries = (k_i64)a->queries,
        .keys = (k_i64)a->keys,
        .size = (k_i64)a->size,
        .causal = a->causal,
        .causal_shift = (k_i64)a->past,
        .scale = a->scale != 0 ? a->scale : 1.0f / sqrtf((float)a->size),
    };
    if (attention_backward(nn->g, nn->stream, nn->storage, (k_i64)a->samples, &args, err))
        return nn_fail_at(nn, "attention_backward", err);
    struct nn_event e = {
        .op = "attention_backward",
        .storage = nn->storage,
        .flops = 2.5 * attention_flops(a),
        .bytes = 4.0 * (double)((q_numbers(a) + kv_numbers(a)) * nn_elem_bytes(nn)),
    };
    list_outputs(nn, a, b, e.out);
    return nn_report_op(nn, e, err);
}

/* ---- rotary positions ---- */

int nn_rope(struct nn *nn, const struct nn_rope *r, struct cairn_error *err)
{
    assert(r->x.by.head == (k_i64)r->size);
    assert(r->samples == 1 || r->x.by.sample == (k_i64)r->tokens * r->x.by.token);
    struct rope_args args = {
        .y = r->x.at,
        .x = r->x.at,
        .cos_ = r->cos_,
        .sin_ = r->sin_,
        .rows = (k_i64)(r->samples * r->tokens * r->heads),
        .columns = (k_i64)r->size,
        .pairs = (k_i64)(r->size / 2),
        .rows_per_position = (k_i64)r->heads,
        .stride = r->x.by.token,
        .positions = (k_i64)r->tokens,
        .back = r->back,
    };
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(args.rows, args.pairs) };
    size_t n = r->samples * r->tokens * r->heads * r->size;
    bool packed = r->x.by.token == (k_i64)(r->heads * r->size);
    return NN_LAUNCH(nn, r->pairs ? "rope_pairs" : "rope_halves", grid, args,
                     NN_OUT(packed ? r->x.at : NULL, n, 2), err);
}
