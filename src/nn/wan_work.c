/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/wan_work.h"
#include "base/thread.h"
#include "gpu/attention_cpu.h"
#include "gpu/gemm_cpu.h"
#include "gpu/rope.h"
#include "nn/wan_adapters.h"
#include "nn/wan_inside.h"
#include "nn/work_memory.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_PER_SAMPLE = 2 }; /* clean frames have a time of their own */

static struct wan_work *work_of(const struct work *w)
{
    return (struct wan_work *)w;
}

size_t wan_tokens(struct wan_size s)
{
    return s.frames * (s.height / 2) * (s.width / 2);
}

static size_t cells_of(struct wan_size s)
{
    return s.frames * s.height * s.width;
}

/* ---- which rows have which modulation ---- */

size_t wan_sets(const struct wan_slot *s)
{
    return s->clean_rows ? SETS_PER_SAMPLE * s->samples : s->samples;
}

size_t wan_segments(const struct wan_slot *s)
{
    return s->clean_rows ? wan_sets(s) : 1;
}

struct wan_segment wan_segment_at(const struct wan_slot *s, size_t i)
{
    size_t sample = i / SETS_PER_SAMPLE, first = sample * s->tokens;
    if (!s->clean_rows)
        return (struct wan_segment){ .rows = s->samples * s->tokens, .rows_per_set = s->tokens };
    if (i % SETS_PER_SAMPLE == 0)
        return (struct wan_segment){ .first = first, .rows = s->clean_rows, .set = i };
    return (
        struct wan_segment){ .first = first + s->clean_rows, .rows = s->tokens - s->clean_rows, .set = i };
}

/* ---- the plan ---- */

/* Bytes of the tensors that a batch is made of. */
struct sizes {
    size_t elem_bytes, narrow, ffn, stream, column, keys;
};

static struct sizes sizes_of(const struct wan_work *w)
{
    const struct wan_shape *s = &w->m->shape;
    size_t elem_bytes = storage_size(w->m->nn->storage);
    return (struct sizes){
        .elem_bytes = elem_bytes,
        .narrow = w->rows * s->width * elem_bytes,
        .ffn = w->rows * at_least(s->ffn, s->width) * elem_bytes,
        .stream = w->rows * s->width * (w->f32_stream ? sizeof(float) : elem_bytes),
        .column = w->rows * sizeof(float),
        .keys = w->o.samples * s->width * elem_bytes, /* per row of a sample */
    };
}

static void plan_attention(struct work_memory *p, const struct wan_work *w, struct wan_attention *a,
                           size_t keys)
{
    struct sizes z = sizes_of(w);
    a->k_raw = work_memory_add(p, keys * z.keys);
    a->k = work_memory_add(p, keys * z.keys);
    a->v = work_memory_add(p, keys * z.keys);
    a->o = work_memory_add(p, z.narrow);
    a->k_rstd = work_memory_add(p, w->o.samples * keys * sizeof(float));
    a->lse = work_memory_add(p, w->m->shape.heads * z.column);
}

static void plan_activations(struct work_memory *p, const struct wan_work *w, struct wan_activations *k)
{
    const struct wan_shape *s = &w->m->shape;
    struct sizes z = sizes_of(w);
    void **narrow[] = { &k->norm1, &k->q_raw, &k->q, &k->norm3, &k->cross_q_raw, &k->cross_q, &k->norm2 };
    for (size_t i = 0; i < ARRAY_LEN(narrow); i++)
        *narrow[i] = work_memory_add(p, z.narrow);
    k->x1 = work_memory_add(p, z.stream);
    k->x2 = work_memory_add(p, z.stream);
    k->fc = work_memory_add(p, z.ffn);
    k->act = work_memory_add(p, z.ffn);
    plan_attention(p, w, &k->self, w->o.extent);
    plan_attention(p, w, &k->text, s->text_rows);
    if (s->clip_width)
        plan_attention(p, w, &k->image, s->clip_rows);
    k->cross_o = s->clip_width ? work_memory_add(p, z.narrow) : k->text.o;
    for (int i = 0; i < 3; i++) {
        k->mean[i] = work_memory_add(p, z.column);
        k->rstd[i] = work_memory_add(p, z.column);
    }
    k->q_rstd = work_memory_add(p, z.column);
    k->cross_q_rstd = work_memory_add(p, z.column);
}

static size_t parts_most(const struct wan_work *w)
{
    return nn_square_error_parts(w->o.extent * w->m->shape.out * WAN_PATCH);
}

static void plan_slot(struct work_memory *p, const struct wan_work *w, struct wan_slot *slot)
{
    const struct wan_shape *s = &w->m->shape;
    size_t elem_bytes = storage_size(w->m->nn->storage), samples = w->o.samples;
    slot->x = work_memory_add(p, w->rows * WAN_PATCH * s->in * elem_bytes);
    slot->text = work_memory_add(p, samples * s->text_rows * s->text_width * elem_bytes);
    slot->clip = work_memory_add(p, samples * s->clip_rows * s->clip_width * elem_bytes);
    slot->sinusoids = work_memory_add(p, SETS_PER_SAMPLE * samples * s->time_width * sizeof(float));
    slot->target = work_memory_add(p, w->rows * WAN_PATCH * s->out * sizeof(float));
    slot->parts = work_memory_add(p, samples * parts_most(w) * sizeof(float));
}

/* What stands before the blocks: positions, time, caption, image. */
static void plan_conditions(struct work_memory *p, struct wan_work *w)
{
    const struct wan_shape *s = &w->m->shape;
    struct sizes z = sizes_of(w);
    size_t table = w->o.extent * (wan_head_size(s) / 2) * sizeof(float);
    size_t vector = SETS_PER_SAMPLE * w->o.samples * s->width * sizeof(float);
    w->rope_cos = work_memory_add(p, table);
    w->rope_sin = work_memory_add(p, table);
    w->time_inner = work_memory_add(p, vector);
    w->time = work_memory_add(p, vector);
    w->time_projected = work_memory_add(p, WAN_MODULATIONS * vector);
    w->modulation = work_memory_add(p, WAN_MODULATIONS * vector);
    w->patches = work_memory_add(p, w->o.extent * WAN_PATCH * s->in * z.elem_bytes);
    w->text_inner = work_memory_add(p, s->text_rows * z.keys);
    w->text = work_memory_add(p, s->text_rows * z.keys);
    if (!s->clip_width)
        return;
    size_t rows = w->o.samples * s->clip_rows;
    w->clip_norm = work_memory_add(p, rows * s->clip_width * z.elem_bytes);
    w->clip_inner = work_memory_add(p, rows * s->clip_width * z.elem_bytes);
    w->clip = work_memory_add(p, s->clip_rows * z.keys);
    w->clip_mean = work_memory_add(p, rows * sizeof(float));
    w->clip_rstd = work_memory_add(p, rows * sizeof(float));
}

static bool saves_on_host(const struct wan_work *w)
{
    return w->o.train && w->o.inputs_on_host;
}

static void plan_inputs(struct work_memory *p, struct wan_work *w)
{
    struct sizes z = sizes_of(w);
    size_t layers = w->m->shape.layers;
    for (size_t i = saves_on_host(w) ? layers : 0; i <= layers; i++)
        w->x[i] = i < 2 || w->o.train ? work_memory_add(p, z.stream) : w->x[i - 2];
}

static void plan_blocks(struct work_memory *p, struct wan_work *w)
{
    bool each = w->o.train && !w->o.recompute;
    size_t layers = w->m->shape.layers;
    for (size_t i = 0; i < layers; i++)
        if (!i || each)
            plan_activations(p, w, &w->saved[i]);
        else
            w->saved[i] = w->saved[0];
}

static void plan_back(struct work_memory *p, struct wan_work *w)
{
    struct sizes z = sizes_of(w);
    size_t keys = at_least(w->m->shape.text_rows, w->m->shape.clip_width ? w->m->shape.clip_rows : 0);
    w->dx = work_memory_add(p, z.stream);
    w->d_narrow = work_memory_add(p, z.narrow);
    w->d_narrow2 = work_memory_add(p, z.narrow);
    w->d_ffn = work_memory_add(p, z.ffn);
    w->d_keys = work_memory_add(p, keys * z.keys);
    w->d_values = work_memory_add(p, keys * z.keys);
    w->d_keys_raw = work_memory_add(p, keys * z.keys);
    w->delta = work_memory_add(p, w->m->shape.heads * z.column);
}

static void plan_lora(struct work_memory *p, struct wan_work *w)
{
    const struct lora *l = &w->m->loras[0];
    size_t elem_bytes = storage_size(w->m->nn->storage);
    size_t keys = w->o.samples * at_least(w->m->shape.text_rows, w->m->shape.clip_rows);
    size_t rows = at_least(w->rows, keys);
    size_t rank = at_least(l->rank, wan_adapters_rank(w->m));
    if (!rank)
        return;
    w->lora.small = work_memory_add(p, rows * rank * elem_bytes);
    if (w->o.train)
        w->lora.small_back = work_memory_add(p, rows * l->rank * elem_bytes);
    if (l->dropout > 0 && w->o.train)
        w->lora.dropped = work_memory_add(p, 2 * rows * l->most_in * elem_bytes);
}

/* All of it, and how much of it is what; a ring of saved inputs has memory of its own. */
static struct work_bytes plan_work(struct work_memory *p, struct wan_work *w)
{
    struct sizes z = sizes_of(w);
    struct work_bytes b = { 0 };
    for (size_t i = 0; i < w->o.slots; i++)
        plan_slot(p, w, &w->slots[i]);
    plan_conditions(p, w);
    b.batch = p->used;
    plan_inputs(p, w);
    b.inputs = p->used - b.batch;
    plan_blocks(p, w);
    w->branch = work_memory_add(p, z.narrow);
    w->last_mean = work_memory_add(p, z.column);
    w->last_rstd = work_memory_add(p, z.column);
    w->y = work_memory_add(p, w->rows * w->m->shape.out * WAN_PATCH * z.elem_bytes);
    if (w->o.train)
        plan_back(p, w);
    plan_lora(p, w);
    b.own = p->used;
    b.block = b.own - b.batch - b.inputs;
    return b;
}

/* ---- on the CPU: packed operands ---- */

static size_t packed_attention(const struct wan *m, const struct work_options *o, size_t keys)
{
    const struct attention_backward_args a = {
        .heads = (k_i64)m->shape.heads,
        .kv_heads = (k_i64)m->shape.heads,
        .queries = (k_i64)o->extent,
        .keys = (k_i64)keys,
        .size = (k_i64)wan_head_size(&m->shape),
    };
    return attention_cpu_scratch(m->nn->g, m->nn->storage, (k_i64)o->samples, &a, o->train);
}

static size_t packed_bytes(const struct wan *m, const struct work_options *o)
{
    const struct wan_shape *s = &m->shape;
    size_t rows = o->samples * o->extent, text = o->samples * s->text_rows,
           clip = s->clip_width ? o->samples * s->clip_rows : 0;
    const struct lora_linear linears[] = {
        { rows, s->width, s->width, m->loras[0].rank, o->train },
        { rows, s->width, s->ffn, m->loras[0].rank, o->train },
        { rows, s->ffn, s->width, m->loras[0].rank, o->train },
        { text, s->width, s->width, m->loras[0].rank, o->train },
        { text, s->text_width, s->width, m->loras[0].rank, false },
        { clip, s->clip_width, s->clip_width, m->loras[0].rank, false },
        { clip, s->clip_width, s->width, m->loras[0].rank, false },
        { clip, s->width, s->width, m->loras[0].rank, o->train },
        { o->extent, s->in * WAN_PATCH, s->width, m->loras[0].rank, false },
        { rows, s->width, s->out * WAN_PATCH, m->loras[0].rank, o->train },
    };
    if (nn_device(m->nn)->api != GPU_API_HOST)
        return 0;
    size_t most = at_least(packed_attention(m, o, o->extent), packed_attention(m, o, s->text_rows));
    if (s->clip_width)
        most = at_least(most, packed_attention(m, o, s->clip_rows));
    for (size_t i = 0; i < ARRAY_LEN(linears); i++)
        if (linears[i].rows)
            most = at_least(most, lora_packed_elements(m->nn, &linears[i]));
    return most * sizeof(float);
}

/* ---- opening ---- */

static size_t slot_bytes(const struct wan_work *w)
{
    struct wan_slot slot;
    struct work_memory p = { 0 };
    plan_slot(&p, w, &slot);
    return p.used;
}

static struct wan_work *new_work(struct wan *m, const struct work_options *o)
{
    struct wan_work *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->m = m;
    w->o = *o;
    w->o.slots = o->slots ? o->slots : 1;
    w->rows = o->samples * o->extent;
    w->f32_stream = m->nn->storage == GPU_F16;
    w->slots = calloc(w->o.slots, sizeof(*w->slots));
    w->weights = calloc(w->o.slots * o->samples, sizeof(*w->weights));
    w->x = calloc(m->shape.layers + 1, sizeof(*w->x));
    w->saved = calloc(m->shape.layers, sizeof(*w->saved));
    if (w->slots && w->weights && w->x && w->saved)
        return w;
    wan_work_close((struct work *)w);
    return NULL;
}

struct work_bytes wan_work_bytes(const struct model *model, const struct work_options *o)
{
    struct wan *m = (struct wan *)model;
    struct wan_work *w = new_work(m, o);
    struct work_memory p = { 0 };
    struct work_bytes b = { 0 };
    if (w)
        b = plan_work(&p, w);
    b.packed = packed_bytes(m, o);
    if (w && saves_on_host(w)) {
        size_t ring = save_ring_device_bytes(m->shape.layers, sizes_of(w).stream);
        b.inputs += ring;
        b.own += ring;
        b.host = save_ring_host_bytes(m->shape.layers, sizes_of(w).stream);
    }
    wan_work_close((struct work *)w);
    return b;
}

static int alloc_all(struct wan_work *w, struct cairn_error *err)
{
    struct nn *nn = w->m->nn;
    size_t packed = packed_bytes(w->m, &w->o), table = w->o.extent * (wan_head_size(&w->m->shape) / 2);
    struct work_memory counted = { 0 }, p = { 0 };
    plan_work(&counted, w);
    if ((saves_on_host(w) &&
         save_ring_open(&w->ring, nn->g, w->m->shape.layers, sizes_of(w).stream, w->x, err)) ||
        gpu_alloc(nn->g, GPU_MEM_DEVICE, counted.used, &w->memory, err) ||
        gpu_staging_open(nn->g, w->o.slots * slot_bytes(w), &w->staging, err) ||
        gpu_staging_open(nn->g, w->o.samples * parts_most(w) * sizeof(float), &w->losses, err) ||
        gpu_staging_open(nn->g, 2 * table * sizeof(float), &w->rope_staging, err) ||
        (packed && gemm_cpu_reserve(nn->g, packed / sizeof(float), err)))
        return -1;
    nn->packed_bytes = at_least(nn->packed_bytes, packed);
    p.base = w->memory;
    plan_work(&p, w);
    for (size_t i = 0; i < w->o.slots; i++) {
        w->slots[i].staging = (char *)w->staging.at + i * slot_bytes(w);
        w->slots[i].weights = w->weights + i * w->o.samples;
    }
    return 0;
}

int wan_work_open(struct model *m, const struct work_options *o, struct work **out, struct cairn_error *err)
{
    struct wan_work *w = new_work((struct wan *)m, o);
    if (!w)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    if (alloc_all(w, err)) {
        wan_work_close((struct work *)w);
        return -1;
    }
    *out = (struct work *)w;
    return 0;
}

void wan_work_close(struct work *work)
{
    struct wan_work *w = work_of(work);
    if (!w)
        return;
    struct gpu *g = w->m->nn->g;
    save_ring_close(&w->ring);
    if (w->memory)
        gpu_free(g, GPU_MEM_DEVICE, w->memory);
    gpu_staging_close(g, &w->staging);
    gpu_staging_close(g, &w->losses);
    gpu_staging_close(g, &w->rope_staging);
    free(w->slots);
    free(w->weights);
    free(w->x);
    free(w->saved);
    free(w);
}

/* ---- batches ---- */

/* A piece of a slot's staging memory, which is copied to the device. */
struct piece {
    struct wan_work *w;
    char *at;
};

static int send(struct piece *p, void *to, size_t bytes, struct cairn_error *err)
{
    char *from = p->at;
    p->at += align_up(bytes, WORK_ALIGN);
    return gpu_upload(p->w->m->nn->g, p->w->m->nn->stream, to, from, bytes, err);
}

static int send_stored(struct piece *p, void *to, const float *from, size_t n, struct cairn_error *err)
{
    enum gpu_storage storage = p->w->m->nn->storage;
    dtype_convert(p->at, storage_dtype(storage), from, DTYPE_F32, n, &(struct dtype_how){ 0 });
    return send(p, to, n * storage_size(storage), err);
}

/* Cosines, then sines, of the time at time_width / 2 frequencies. */
static void make_sinusoid(float *y, size_t width, double time)
{
    size_t half = width / 2;
    for (size_t j = 0; j < half; j++) {
        double angle = time * pow(10000, -(double)j / (double)half);
        y[j] = (float)cos(angle);
        y[half + j] = (float)sin(angle);
    }
}

static int send_times(struct piece *p, const struct wan_slot *s, const float *times, struct cairn_error *err)
{
    size_t width = p->w->m->shape.time_width, sets = wan_sets(s), per_sample = sets / s->samples;
    float *at = (float *)(void *)p->at;
    for (size_t i = 0; i < sets; i++) {
        bool clean = per_sample > 1 && i % per_sample == 0;
        make_sinusoid(at + i * width, width, clean ? 0 : (double)times[i / per_sample]);
    }
    return send(p, s->sinusoids, sets * width * sizeof(float), err);
}

/* The head's output has channels as its fastest index: (row in the patch, column in the patch, channel). */
static size_t token_of_cell(struct wan_size s, size_t cell, size_t *within)
{
    size_t x = cell % s.width, y = cell / s.width % s.height, f = cell / s.width / s.height;
    *within = y % 2 * 2 + x % 2;
    return (f * (s.height / 2) + y / 2) * (s.width / 2) + x / 2;
}

static void to_tokens(float *y, const float *x, struct wan_size s, size_t channels)
{
    size_t cells = cells_of(s), within;
    for (size_t cell = 0; cell < cells; cell++) {
        size_t token = token_of_cell(s, cell, &within);
        for (size_t c = 0; c < channels; c++)
            y[(token * WAN_PATCH + within) * channels + c] = x[c * cells + cell];
    }
}

/* What wan_output reads, laid out by channels in f32: piece by piece on all cores, a frame of a sample each. */
struct reading {
    struct wan_size size;
    size_t channels;
    enum dtype dtype;
    const char *stored;
    float *tokens, *into;
};

static int read_frame(void *context, size_t piece, struct cairn_error *err)
{
    const struct reading *r = context;
    size_t frame = r->size.height * r->size.width, cells = cells_of(r->size), n = frame * r->channels, within;
    size_t sample = piece / r->size.frames, first = piece % r->size.frames * frame;
    float *x = r->tokens + piece * n, *y = r->into + sample * cells * r->channels;
    const struct wan_size one = { 1, r->size.height, r->size.width };
    (void)err;
    dtype_convert(x, DTYPE_F32, r->stored + piece * n * dtype_size(r->dtype), r->dtype, n,
                  &(struct dtype_how){ 0 });
    for (size_t cell = 0; cell < frame; cell++) {
        size_t token = token_of_cell(one, cell, &within);
        for (size_t c = 0; c < r->channels; c++)
            y[c * cells + first + cell] = x[(token * WAN_PATCH + within) * r->channels + c];
    }
    return 0;
}

static int send_target(struct piece *p, const struct wan_slot *s, const float *target,
                       struct cairn_error *err)
{
    size_t channels = p->w->m->shape.out, n = cells_of(s->size) * channels;
    for (size_t i = 0; i < s->samples; i++)
        to_tokens((float *)(void *)p->at + i * n, target + i * n, s->size, channels);
    return send(p, s->target, s->samples * n * sizeof(float), err);
}

int wan_put(struct work *work, size_t slot, const struct wan_batch *b, struct cairn_error *err)
{
    struct wan_work *w = work_of(work);
    const struct wan_shape *shape = &w->m->shape;
    struct wan_slot *s = &w->slots[slot];
    struct piece p = { w, s->staging };
    assert(slot < w->o.slots && b->samples <= w->o.samples && wan_tokens(b->size) <= w->o.extent);
    assert(b->size.height % 2 == 0 && b->size.width % 2 == 0 && b->expert < w->m->model.n_bases);
    s->samples = b->samples;
    s->expert = b->expert;
    s->size = b->size;
    s->tokens = wan_tokens(b->size);
    s->clean_rows = b->clean_frames * (b->size.height / 2) * (b->size.width / 2);
    s->has_target = b->target != NULL;
    for (size_t i = 0; i < b->samples; i++)
        s->weights[i] = b->weights ? b->weights[i] : 1;
    size_t text = shape->text_rows * shape->text_width, clip = shape->clip_rows * shape->clip_width;
    if (send_stored(&p, s->x, b->x, b->samples * shape->in * cells_of(b->size), err) ||
        (b->text && send_stored(&p, s->text, b->text, b->samples * text, err)) ||
        (clip && b->clip && send_stored(&p, s->clip, b->clip, b->samples * clip, err)) ||
        send_times(&p, s, b->times, err))
        return -1;
    return b->target ? send_target(&p, s, b->target, err) : 0;
}

int wan_need_rope(struct wan_work *w, struct wan_size size, struct cairn_error *err)
{
    struct nn *nn = w->m->nn;
    size_t pairs = wan_head_size(&w->m->shape) / 2, n = wan_tokens(size) * pairs;
    float *table = w->rope_staging.at;
    const struct wan_size *now = &w->rope_size;
    if (now->frames == size.frames && now->height == size.height && now->width == size.width)
        return 0;
    if (gpu_wait(nn->g, nn->stream, err)) /* a copy of the last table may be under way */
        return -1;
    w->rope_size = (struct wan_size){ 0 };
    rope_table_grid(size.frames, size.height / 2, size.width / 2, pairs, table, table + n);
    if (gpu_upload(nn->g, nn->stream, w->rope_cos, table, n * sizeof(float), err) ||
        gpu_upload(nn->g, nn->stream, w->rope_sin, table + n, n * sizeof(float), err))
        return -1;
    w->rope_size = size;
    return 0;
}

/* ---- results ---- */

/* Elements of a sample that have a loss. */
static size_t loss_elements(const struct wan_work *w, const struct wan_slot *s)
{
    return (s->tokens - s->clean_rows) * WAN_PATCH * w->m->shape.out;
}

int wan_loss(struct work *work, size_t slot, double *sum, double *units, struct cairn_error *err)
{
    struct wan_work *w = work_of(work);
    struct nn *nn = w->m->nn;
    const struct wan_slot *s = &w->slots[slot];
    size_t n = loss_elements(w, s), parts = nn_square_error_parts(n);
    const float *got = w->losses.at;
    if (gpu_download(nn->g, nn->stream, w->losses.at, s->parts, s->samples * parts * sizeof(float), err) ||
        gpu_wait(nn->g, nn->stream, err))
        return -1;
    *sum = 0;
    *units = (double)s->samples;
    for (size_t i = 0; i < s->samples * parts; i++)
        *sum += (double)s->weights[i / parts] * (double)got[i] / (double)n;
    return 0;
}

int wan_output(struct work *work, size_t slot, float *into, struct cairn_error *err)
{
    struct wan_work *w = work_of(work);
    struct nn *nn = w->m->nn;
    const struct wan_slot *s = &w->slots[slot];
    size_t channels = w->m->shape.out, n = cells_of(s->size) * channels;
    size_t elem_bytes = storage_size(nn->storage);
    CLEANUP(mem_free) void *stored = malloc(s->samples * n * elem_bytes);
    CLEANUP(mem_free) float *tokens = malloc(s->samples * n * sizeof(float));
    if (!stored || !tokens)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a latent of %zu values", n);
    if (gpu_download(nn->g, nn->stream, stored, w->y, s->samples * n * elem_bytes, err) ||
        gpu_wait(nn->g, nn->stream, err))
        return -1;
    struct reading r = { s->size, channels, storage_dtype(nn->storage), stored, tokens, into };
    return parallel_for(s->samples * s->size.frames, 0, read_frame, &r, err);
}
