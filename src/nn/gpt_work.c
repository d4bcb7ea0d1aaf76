/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/gpt_work.h"

#include "nn/gpt_inside.h"
#include "nn/work_memory.h"
#include "gpu/attention_cpu.h"
#include "gpu/gemm_cpu.h"
#include "gpu/id_index.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- the plan ---- */

static void plan_activations(struct work_memory *p, const struct gpt_work *r, struct activations *k,
                             void *qkv)
{
    const struct gpt_shape *s = &r->m->shape;
    size_t elem_bytes = storage_size(r->m->nn->storage), narrow = r->rows * s->width * elem_bytes;
    size_t wide = r->rows * s->ffn * elem_bytes, column = r->rows * sizeof(float);
    for (int i = 0; i < 2; i++) {
        k->norm[i] = work_memory_add(p, narrow);
        k->mean[i] = work_memory_add(p, column);
        k->rstd[i] = work_memory_add(p, column);
    }
    k->qkv = qkv;
    k->attention = work_memory_add(p, narrow);
    k->lse = work_memory_add(p, r->rows * s->heads * sizeof(float));
    k->middle = work_memory_add(p, narrow);
    k->fc = work_memory_add(p, wide);
    k->up = s->swiglu ? work_memory_add(p, wide) : NULL;
    k->act = work_memory_add(p, wide);
}

/* Each block keeps what it made if it is needed in the backward pass; else all share one. q, k and v are what
 * later tokens look at when text is generated. */
static void plan_blocks(struct work_memory *p, struct gpt_work *r)
{
    const struct gpt_shape *s = &r->m->shape;
    size_t elem_bytes = storage_size(r->m->nn->storage), qkv = r->rows * gpt_qkv_rows(s) * elem_bytes;
    bool each = r->o.train && !r->o.recompute, each_qkv = each || !r->o.train;
    bool each_x = r->o.train;
    for (size_t i = 0; i <= s->layers; i++)
        r->x[i] = i < 2 || each_x ? work_memory_add(p, r->rows * s->width * elem_bytes) : r->x[i - 2];
    for (size_t i = 0; i < s->layers; i++) {
        void *own = i == 0 || each_qkv ? work_memory_add(p, qkv) : r->saved[0].qkv;
        if (i == 0 || each)
            plan_activations(p, r, &r->saved[i], own);
        else {
            r->saved[i] = r->saved[0];
            r->saved[i].qkv = own;
        }
    }
}

static void plan_back(struct work_memory *p, struct gpt_work *r)
{
    const struct gpt_shape *s = &r->m->shape;
    size_t elem_bytes = storage_size(r->m->nn->storage);
    size_t narrow = r->rows * s->width * elem_bytes, wide = r->rows * s->ffn * elem_bytes;
    r->dx = work_memory_add(p, narrow);
    r->d_narrow = work_memory_add(p, narrow);
    r->d_qkv = work_memory_add(p, r->rows * gpt_qkv_rows(s) * elem_bytes);
    r->d_wide = work_memory_add(p, wide);
    r->d_wide2 = s->swiglu ? work_memory_add(p, wide) : NULL;
    r->delta = work_memory_add(p, r->rows * s->heads * sizeof(float));
}

static void plan_slot(struct work_memory *p, const struct gpt_work *r, struct slot *s)
{
    size_t bytes = r->rows * sizeof(int);
    s->ids = work_memory_add(p, bytes);
    s->targets = work_memory_add(p, bytes);
    s->list_ids = work_memory_add(p, bytes);
    s->list_first = work_memory_add(p, bytes + sizeof(int));
    s->list_members = work_memory_add(p, bytes);
    s->loss = work_memory_add(p, r->rows * sizeof(float));
}

static void plan_lora(struct work_memory *p, struct gpt_work *r)
{
    const struct lora *l = &r->m->lora;
    size_t elem_bytes = storage_size(r->m->nn->storage);
    if (!l->rank)
        return;
    r->lora.small = work_memory_add(p, r->rows * l->rank * elem_bytes);
    r->lora.small_back = work_memory_add(p, r->rows * l->rank * elem_bytes);
    if (l->dropout > 0 && r->o.train)
        r->lora.dropped = work_memory_add(p, 2 * r->rows * l->most_in * elem_bytes);
}

static void plan_work(struct work_memory *p, struct gpt_work *r)
{
    const struct gpt_shape *s = &r->m->shape;
    size_t elem_bytes = storage_size(r->m->nn->storage), narrow = r->rows * s->width * elem_bytes;
    for (size_t i = 0; i < r->o.slots; i++)
        plan_slot(p, r, &r->slots[i]);
    r->position_ids = work_memory_add(p, r->o.tokens * sizeof(int));
    r->position_first = work_memory_add(p, (r->o.tokens + 1) * sizeof(int));
    r->position_members = work_memory_add(p, r->rows * sizeof(int));
    plan_blocks(p, r);
    r->last = work_memory_add(p, narrow);
    r->last_mean = work_memory_add(p, r->rows * sizeof(float));
    r->last_rstd = work_memory_add(p, r->rows * sizeof(float));
    r->scores = work_memory_add(p, r->at_once * r->m->vocab_padded * elem_bytes);
    r->branch = s->dropout > 0 && r->o.train ? work_memory_add(p, narrow) : NULL;
    if (r->o.train)
        plan_back(p, r);
    plan_lora(p, r);
}

/* ---- opening ---- */

/* Scores of this many bytes are computed at once: all of them would be the largest tensor by far. Many rows
 * make matmuls fast; a small GPU has other uses for that memory. */
static size_t scores_bytes(const struct gpu_info *g)
{
    uint64_t share = g->total_bytes / 64, least = 128 << 20, most = 1 << 30;
    if (g->api == GPU_API_HOST)
        return 32 << 20;
    return share < least ? least : share > most ? most : share;
}

/* All parts but the last are of one shape, and so is that if it can be. */
static size_t rows_at_once(const struct gpt *m, size_t rows)
{
    size_t row = m->vocab_padded * storage_size(m->nn->storage), most = scores_bytes(nn_device(m->nn)) / row;
    most = most < 64 ? 64 : most / 64 * 64;
    size_t parts = (rows + most - 1) / most;
    return parts <= 1 ? rows : ((rows + parts - 1) / parts + 63) / 64 * 64;
}

static struct gpt_work *new_work(struct gpt *m, const struct gpt_work_options *o)
{
    struct gpt_work *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->m = m;
    r->o = *o;
    r->o.slots = o->slots ? o->slots : 1;
    r->rows = o->samples * o->tokens;
    r->at_once = rows_at_once(m, r->rows);
    r->slots = calloc(r->o.slots, sizeof(*r->slots));
    r->x = calloc(m->shape.layers + 1, sizeof(*r->x));
    r->saved = calloc(m->shape.layers, sizeof(*r->saved));
    if (!r->slots || !r->x || !r->saved) {
        gpt_work_close(r);
        return NULL;
    }
    return r;
}

size_t gpt_work_bytes(const struct gpt *m, const struct gpt_work_options *o)
{
    struct gpt_work *r = new_work((struct gpt *)m, o);
    struct work_memory p = { 0 };
    if (r)
        plan_work(&p, r);
    gpt_work_close(r);
    return p.used;
}

enum { INTS_PER_ROW = 5 }; /* of a slot; and one more */

static int open_staging(struct gpt_work *r, struct cairn_error *err)
{
    size_t ints = r->rows * INTS_PER_ROW + 1;
    if (gpu_staging_open(r->m->nn->g, r->o.slots * ints * sizeof(int), &r->staging, err) ||
        gpu_staging_open(r->m->nn->g, r->o.slots * r->rows * sizeof(float), &r->losses_staging, err))
        return -1;
    r->losses = r->losses_staging.at;
    for (size_t i = 0; i < r->o.slots; i++)
        r->slots[i].staging = (int *)r->staging.at + i * ints;
    return 0;
}

/* Every sample has the same positions. */
static int put_positions(struct gpt_work *r, struct cairn_error *err)
{
    struct arena arena = { 0 };
    struct id_index lists;
    struct gpu *g = r->m->nn->g;
    int *ids = ARENA_NEW(&arena, int, r->rows), code = -1;
    for (size_t i = 0; i < r->rows; i++)
        ids[i] = (int)(i % r->o.tokens);
    if (!id_index_build(&arena, ids, r->rows, (int)r->o.tokens, &lists, err) &&
        !gpu_upload(g, NULL, r->position_ids, lists.ids, r->o.tokens * sizeof(int), err) &&
        !gpu_upload(g, NULL, r->position_first, lists.first, (r->o.tokens + 1) * sizeof(int), err) &&
        !gpu_upload(g, NULL, r->position_members, lists.members, r->rows * sizeof(int), err) &&
        !gpu_wait(g, NULL, err))
        code = 0;
    arena_release(&arena);
    return code;
}

static size_t widest(const struct gpt_shape *s)
{
    size_t qkv = gpt_qkv_rows(s);
    return qkv > s->ffn ? qkv : s->ffn;
}

size_t gpt_work_sums_bytes(const struct gpt *m, const struct gpt_work_options *o)
{
    return o->train ? nn_reserve_bytes(o->samples * o->tokens, widest(&m->shape)) : 0;
}

size_t gpt_work_packed_bytes(const struct gpt *m, const struct gpt_work_options *o)
{
    const struct gpt_shape *s = &m->shape;
    size_t rows = o->samples * o->tokens;
    const size_t matrices[][3] = {
        { rows, gpt_qkv_rows(s), s->width },
        { rows, s->width, s->width },
        { rows, s->ffn, s->width },
        { rows, s->width, s->ffn },
        { rows_at_once(m, rows), m->vocab_padded, s->width },
    };
    const struct attention_backward_args attention = {
        .heads = (k_i64)s->heads,
        .kv_heads = (k_i64)s->kv_heads,
        .queries = (k_i64)o->tokens,
        .keys = (k_i64)o->tokens,
        .size = (k_i64)(s->width / s->heads),
    };
    if (nn_device(m->nn)->api != GPU_API_HOST)
        return 0;
    size_t most = attention_cpu_scratch(m->nn->g, m->nn->storage, (k_i64)o->samples, &attention, o->train);
    for (size_t i = 0; i < ARRAY_LEN(matrices); i++) {
        struct lora_linear l = {
            .rows = matrices[i][0],
            .out = matrices[i][1],
            .in = matrices[i][2],
            .rank = m->lora.rank,
            .train = o->train,
        };
        most = at_least(most, lora_packed_elements(m->nn, &l));
    }
    return most * sizeof(float);
}

static int reserve(struct gpt_work *r, struct cairn_error *err)
{
    struct nn *nn = r->m->nn;
    size_t packed = gpt_work_packed_bytes(r->m, &r->o);
    if (packed && gemm_cpu_reserve(nn->g, packed / sizeof(float), err))
        return -1;
    nn->packed_bytes = at_least(nn->packed_bytes, packed);
    return r->o.train ? nn_reserve(nn, r->rows, widest(&r->m->shape), err) : 0;
}

int gpt_work_open(struct gpt *m, const struct gpt_work_options *o, struct gpt_work **out,
                  struct cairn_error *err)
{
    if (o->tokens > m->shape.context)
        return cairn_fail(err, CAIRN_EUSAGE, "%zu tokens at once; the model's context is %zu", o->tokens,
                          m->shape.context);
    struct gpt_work *r = new_work(m, o);
    if (!r)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    struct work_memory measured = { 0 }, p = { 0 };
    plan_work(&measured, r);
    if (gpu_alloc(m->nn->g, GPU_MEM_DEVICE, measured.used, &r->memory, err) || open_staging(r, err) ||
        reserve(r, err)) {
        gpt_work_close(r);
        return -1;
    }
    p.base = r->memory;
    plan_work(&p, r);
    if (put_positions(r, err)) {
        gpt_work_close(r);
        return -1;
    }
    *out = r;
    return 0;
}

void gpt_work_close(struct gpt_work *r)
{
    if (!r)
        return;
    struct gpu *g = r->m->nn->g;
    if (r->memory)
        gpu_free(g, GPU_MEM_DEVICE, r->memory);
    gpu_staging_close(g, &r->staging);
    gpu_staging_close(g, &r->losses_staging);
    free(r->slots);
    free(r->x);
    free(r->saved);
    free(r);
}

/* ---- batches ---- */

int gpt_send(struct gpt_work *r, int *to, int **staging, const int *from, size_t n, struct cairn_error *err)
{
    int *at = *staging;
    memcpy(at, from, n * sizeof(int));
    *staging += n;
    return gpu_upload(r->m->nn->g, r->m->nn->stream, to, at, n * sizeof(int), err);
}

int gpt_put(struct gpt_work *r, size_t slot, const int *ids, const int *targets, struct cairn_error *err)
{
    assert(slot < r->o.slots);
    struct slot *s = &r->slots[slot];
    struct arena arena = { 0 };
    struct id_index lists;
    int *staging = s->staging, code = -1;
    s->n_targets = 0;
    for (size_t i = 0; i < r->rows; i++)
        s->n_targets += targets[i] >= 0;
    if (!id_index_build(&arena, ids, r->rows, (int)r->m->shape.vocab, &lists, err) &&
        !gpt_send(r, s->ids, &staging, ids, r->rows, err) &&
        !gpt_send(r, s->targets, &staging, targets, r->rows, err) &&
        !gpt_send(r, s->list_ids, &staging, lists.ids, lists.n, err) &&
        !gpt_send(r, s->list_first, &staging, lists.first, lists.n + 1, err) &&
        !gpt_send(r, s->list_members, &staging, lists.members, r->rows, err)) {
        s->lists = lists.n;
        code = 0;
    }
    arena_release(&arena);
    return code;
}
