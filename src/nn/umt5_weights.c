/* SPDX-License-Identifier: Apache-2.0 */
#include "base/int.h"
#include "base/str.h"
#include "base/thread.h"
#include "nn/umt5_inside.h"
#include "nn/work_memory.h"
#include "os/thread.h"
#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 4 << 20 /* at a time, by a thread */ };

/* ---- the table ---- */

static void add_layer(struct umt5 *u, size_t slot)
{
    const struct umt5_info *s = &u->file.info;
    enum param_kind kind = s->keeps_fp8 ? PARAM_QUANTIZED : PARAM_MATRIX;
    struct params *p = &u->params;
    u->slots[slot][UMT5_QKV] = params_add(p, kind, 3 * s->attention_dim, s->dim, "%zu.qkv", slot);
    u->slots[slot][UMT5_OUT] = params_add(p, kind, s->dim, s->attention_dim, "%zu.o", slot);
    u->slots[slot][UMT5_GATE_UP] = params_add(p, kind, 2 * s->ffn, s->dim, "%zu.gate_up", slot);
    u->slots[slot][UMT5_FFN_OUT] = params_add(p, kind, s->dim, s->ffn, "%zu.down", slot);
}

/* All that is on the device, by the layout. */
static void list_params(struct umt5 *u)
{
    const struct umt5_info *s = &u->file.info;
    const struct umt5_layout *l = &u->layout;
    struct params *p = &u->params;
    size_t slots = l->resident + l->windows;
    *p = (struct params){ 0 };
    u->slots = arena_alloc(&p->arena, (slots + 1) * sizeof(*u->slots));
    u->norms = arena_alloc(&p->arena, (s->layers + 1) * sizeof(*u->norms));
    for (size_t i = 0; i < slots; i++)
        add_layer(u, i);
    for (size_t i = 0; i < s->layers; i++)
        for (int k = 0; k < 2; k++)
            u->norms[i][k] = params_add(p, PARAM_VECTOR, 1, s->dim, "%zu.norm%d", i, k + 1);
    u->norm = params_add(p, PARAM_VECTOR, 1, s->dim, "norm");
    u->bias = params_add(p, PARAM_VECTOR, 1, s->layers * s->heads * (2 * UMT5_SPAN + 1), "bias");
    u->gate = params_add(p, PARAM_VECTOR, 1, s->dim, "gate");
    if (l->embedding)
        u->embedding = params_add(p, PARAM_MATRIX, s->vocab, s->dim, "embedding");
}

uint64_t umt5_work_list(struct umt5_work *w, const struct umt5_info *s, enum gpu_storage storage, size_t rows)
{
    struct work_memory m = { .base = w->memory };
    size_t elem = storage_size(storage), inner = at_least(3 * s->attention_dim, 2 * s->ffn);
    w->x = work_memory_add(&m, rows * s->dim * sizeof(float));
    w->norm = work_memory_add(&m, rows * at_least(s->dim, s->attention_dim) * elem);
    w->inner = work_memory_add(&m, rows * at_least(inner, s->dim) * elem);
    w->act = work_memory_add(&m, rows * s->ffn * elem);
    w->lse = work_memory_add(&m, rows * s->heads * sizeof(float));
    w->rstd = work_memory_add(&m, rows * sizeof(float));
    w->ids = work_memory_add(&m, rows * sizeof(int));
    return m.used;
}

/* ---- the layout ---- */

static void measure(const struct umt5_info *s, const struct nn *nn, struct umt5_layout *l)
{
    struct umt5 u = { .file = { .info = *s }, .layout = *l };
    struct umt5_work w = { 0 };
    list_params(&u);
    l->weights = weights_size(&u.params, nn->storage);
    l->work = umt5_work_list(&w, s, nn->storage, l->rows);
    params_release(&u.params);
    l->host_most = l->rows * s->dim * sizeof(float);
    if (l->resident == s->layers)
        return;
    size_t layer = s->dim * (4 * s->attention_dim + 3 * s->ffn);
    if (nn_device(nn)->api != GPU_API_HOST)
        l->host_most += layer * (s->keeps_fp8 ? 1 : storage_size(nn->storage));
    l->host_most += UMT5_HOST_BYTES;
}

static bool fits(const struct umt5_info *s, const struct nn *nn, uint64_t budget, struct umt5_layout *l)
{
    measure(s, nn, l);
    return l->weights <= budget && l->work <= budget - l->weights;
}

int umt5_plan(const struct umt5_info *s, const struct nn *nn, uint64_t budget, struct umt5_layout *out,
              struct cairn_error *err)
{
    for (int embedding = 1; embedding >= 0; embedding--)
        for (size_t rows = UMT5_MOST_ROWS; rows >= UMT5_LEAST_ROWS; rows /= 2) {
            *out = (struct umt5_layout){ .resident = s->layers, .embedding = embedding, .rows = rows };
            if (fits(s, nn, budget, out))
                return 0;
        }
    for (size_t windows = at_most(UMT5_WINDOWS, s->layers); windows; windows--)
        for (size_t resident = s->layers - windows + 1; resident-- > 0;) {
            *out =
                (struct umt5_layout){ .resident = resident, .windows = windows, .rows = 2 * UMT5_LEAST_ROWS };
            if (fits(s, nn, budget, out))
                return 0;
            out->rows = UMT5_LEAST_ROWS;
            if (!resident && fits(s, nn, budget, out))
                return 0;
        }
    char needs[24], has[24];
    cairn_fail(err, CAIRN_ENOMEM, "umT5 needs %s of the device's memory, layer by layer, but has %s",
               bytes_text((int64_t)(out->weights + out->work), needs), bytes_text((int64_t)budget, has));
    return cairn_hint(err, "use a file in fp8, or the CPU");
}

/* ---- layers ---- */

/* The tensors of a layer for a slot, and where the file has them. */
static void list_tensors(struct umt5 *u, size_t layer, size_t slot, struct param_tensors *t,
                         const struct st_tensor **found)
{
    static const struct {
        enum umt5_param param;
        enum umt5_tensor first;
        size_t n;
    } rows[] = { { UMT5_QKV, UMT5_Q, 3 },
                 { UMT5_OUT, UMT5_O, 1 },
                 { UMT5_GATE_UP, UMT5_GATE, 2 },
                 { UMT5_FFN_OUT, UMT5_DOWN, 1 } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct param *p = &u->params.list[u->slots[slot][rows[i].param]];
        size_t each = p->rows / rows[i].n;
        for (size_t k = 0; k < rows[i].n; k++) {
            struct param_tensor part = { .param = p, .first = k * each, .rows = each };
            found[t->n] = u->file.layers[layer][(size_t)rows[i].first + k];
            param_tensors_add(t, &part, "%s", found[t->n]->name);
        }
    }
}

static int load_layer(struct umt5 *u, size_t layer, size_t slot, struct cairn_error *err)
{
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    CLEANUP(param_report_release) struct param_report report = { 0 };
    const struct st_tensor *found[UMT5_MATRICES];
    list_tensors(u, layer, slot, &t, found);
    return param_load(&t, &u->weights, &u->file.source, found, &report, err);
}

/* ---- what stays there ---- */

static void add_whole(struct umt5 *u, size_t param, const struct st_tensor *tensor, struct param_tensors *t,
                      const struct st_tensor **found)
{
    struct param_tensor whole = param_tensor_whole(&u->params.list[param]);
    found[t->n] = tensor;
    param_tensors_add(t, &whole, "%s", tensor->name);
}

static int put_bias(struct umt5 *u, struct cairn_error *err)
{
    const struct umt5_info *s = &u->file.info;
    size_t span = 2 * UMT5_SPAN + 1;
    CLEANUP(mem_free) float *table = malloc(UMT5_BUCKETS * s->heads * sizeof(*table));
    CLEANUP(mem_free) float *all = malloc(s->layers * s->heads * span * sizeof(*all));
    if (!table || !all)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the relative bias");
    for (size_t i = 0; i < s->layers; i++) {
        const struct st_tensor *t = u->file.layers[i][UMT5_BIAS];
        if (source_read_as(&u->file.source, t, 0, t->elements, DTYPE_F32, table, err))
            return -1;
        for (size_t h = 0; h < s->heads; h++)
            for (size_t d = 0; d < span; d++)
                all[(i * s->heads + h) * span + d] = table[umt5_bucket((long)d - UMT5_SPAN) * s->heads + h];
    }
    return weights_put(&u->weights, &u->params.list[u->bias], all, err);
}

/* Norms, the embedding and the resident layers, in one go. */
static int load_resident(struct umt5 *u, struct cairn_error *err)
{
    const struct umt5_info *s = &u->file.info;
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    CLEANUP(param_report_release) struct param_report report = { 0 };
    size_t most = 2 * s->layers + 2 + u->layout.resident * UMT5_MATRICES;
    const struct st_tensor **found = ARENA_NEW(&a, const struct st_tensor *, most);
    float *gate = ARENA_NEW(&a, float, s->dim);
    for (size_t i = 0; i < s->layers; i++)
        for (int k = 0; k < 2; k++)
            add_whole(u, u->norms[i][k], u->file.layers[i][UMT5_NORM1 + k], &t, found);
    add_whole(u, u->norm, u->file.norm, &t, found);
    if (u->layout.embedding)
        add_whole(u, u->embedding, u->file.embedding, &t, found);
    for (size_t i = 0; i < u->layout.resident; i++)
        list_tensors(u, i, i, &t, found);
    for (size_t i = 0; i < s->dim; i++)
        gate[i] = 1 / umt5_ffn_factor(u->nn->storage);
    return param_load(&t, &u->weights, &u->file.source, found, &report, err) ||
                   weights_put(&u->weights, &u->params.list[u->gate], gate, err) || put_bias(u, err)
               ? -1
               : 0;
}

/* ---- layers from the file ---- */

static bool is_cpu(const struct umt5 *u)
{
    return gpu_info(u->nn->g)->api == GPU_API_HOST;
}

/* Where the matrices of a slot begin, and how long they are. */
static char *slot_at(const struct umt5 *u, size_t slot, size_t *bytes)
{
    const struct param *first = &u->params.list[u->slots[slot][UMT5_QKV]];
    const struct param *last = &u->params.list[u->slots[slot][UMT5_FFN_OUT]];
    bool codes = first->kind == PARAM_QUANTIZED;
    size_t size = codes ? 1 : storage_size(u->nn->storage);
    *bytes = (last->at + last->rows * last->columns - first->at) * size;
    return (codes ? (char *)u->weights.quantized : (char *)u->weights.matrices) + first->at * size;
}

static float *slot_scales(const struct umt5 *u, size_t slot, size_t *bytes)
{
    const struct param *first = &u->params.list[u->slots[slot][UMT5_QKV]];
    const struct param *last = &u->params.list[u->slots[slot][UMT5_FFN_OUT]];
    *bytes =
        first->kind == PARAM_QUANTIZED ? (last->scale_at + last->rows - first->scale_at) * sizeof(float) : 0;
    return *bytes ? u->weights.scales + first->scale_at : NULL;
}

static int open_stream(struct umt5 *u, struct cairn_error *err)
{
    size_t bytes, scales;
    if (!u->layout.windows || is_cpu(u))
        return 0;
    slot_at(u, u->layout.resident, &bytes);
    slot_scales(u, u->layout.resident, &scales);
    if (gpu_staging_open(u->nn->g, align_up(bytes, sizeof(float)) + scales, &u->staging, err) ||
        gpu_stream_open(u->nn->g, &u->up, err))
        return -1;
    for (size_t i = 0; i < u->layout.windows; i++)
        if (gpu_event_open(u->nn->g, &u->came[i], err) || gpu_event_open(u->nn->g, &u->used[i], err))
            return -1;
    return 0;
}

/* Pieces of the parts, read by several threads. */
struct pieces {
    struct umt5 *u;
    char *device, *host; /* where the window is, and what stands for it */
    const struct transfer_part *part;
    size_t each;
};

static int read_piece(void *context, size_t piece, struct cairn_error *err)
{
    const struct pieces *p = context;
    uint64_t at = (uint64_t)piece * p->each, left = p->part->bytes - at;
    size_t n = left < p->each ? (size_t)left : p->each;
    char *to = p->host + ((char *)p->part->device - p->device) + at;
    return p->part->move(p->part->context, at, n, to, err);
}

static void *read_layer(void *context)
{
    struct umt5 *u = context;
    struct umt5_reader *r = &u->reader;
    size_t slot = u->layout.resident + r->window, bytes, scale_bytes;
    char *at = slot_at(u, slot, &bytes), *host = u->staging.at ? u->staging.at : at;
    float *scales = slot_scales(u, slot, &scale_bytes);
    char *host_scales = u->staging.at ? host + align_up(bytes, sizeof(float)) : (char *)scales;
    struct pieces p = { .u = u, .device = at, .host = host };
    for (size_t i = 0; i < r->parts.n && !r->result; i++) {
        p.part = &r->parts.parts[i];
        size_t unit = p.part->unit ? p.part->unit : 1;
        p.each = at_least(READ_BYTES / unit, 1) * unit;
        r->result = parallel_for(div_up(p.part->bytes, p.each), r->threads, read_piece, &p, &r->err);
    }
    for (size_t i = 0; i < r->parts.n_scales && !r->result; i++) {
        const struct transfer_part *s = &r->parts.scales[i];
        memcpy(host_scales + ((char *)s->device - (char *)scales), s->context, s->bytes);
    }
    if (!r->result)
        r->result = source_unchanged(&u->file.source, &r->err);
    return NULL;
}

void umt5_weights_rest(struct umt5 *u)
{
    if (u->reader.running && !u->reader.by_main)
        pthread_join(u->reader.thread, NULL);
    u->reader.running = false;
    param_parts_release(&u->reader.parts);
    param_tensors_release(&u->reader.tensors);
}

int umt5_weights_send(struct umt5 *u, size_t layer, struct cairn_error *err)
{
    struct umt5_reader *r = &u->reader;
    if (layer < u->layout.resident || (r->running && r->layer == layer))
        return 0;
    umt5_weights_rest(u);
    *r = (struct umt5_reader){ .layer = layer,
                               .window = (layer - u->layout.resident) % u->layout.windows,
                               .threads = is_cpu(u) ? 1 : 0 };
    list_tensors(u, layer, u->layout.resident + r->window, &r->tensors, r->found);
    int parts = param_load_parts(&r->tensors, &u->weights, &u->file.source, r->found, &r->parts, err);
    if (parts < 0)
        return -1;
    /* On the CPU the window itself is written, which the layer before may still use where there is one. */
    r->by_main = parts > 0 || (is_cpu(u) && u->layout.windows < 2);
    if (!r->by_main && os_thread_start(&r->thread, read_layer, u))
        r->by_main = true;
    r->running = true;
    return 0;
}

static int upload(struct umt5 *u, size_t window, struct cairn_error *err)
{
    size_t bytes, scale_bytes, slot = u->layout.resident + window;
    char *at = slot_at(u, slot, &bytes), *host = u->staging.at;
    float *scales = slot_scales(u, slot, &scale_bytes);
    struct gpu *g = u->nn->g;
    if ((u->was_used[window] && gpu_event_wait(g, u->up, u->used[window], err)) ||
        gpu_upload(g, u->up, at, host, bytes, err) ||
        (scale_bytes &&
         gpu_upload(g, u->up, scales, host + align_up(bytes, sizeof(float)), scale_bytes, err)) ||
        gpu_event_record(g, u->came[window], u->up, err) ||
        gpu_event_wait(g, u->nn->stream, u->came[window], err))
        return -1;
    return gpu_wait(g, u->up, err); /* the staging memory is free again */
}

int umt5_weights_get(struct umt5 *u, size_t layer, size_t *slot, struct cairn_error *err)
{
    struct umt5_reader *r = &u->reader;
    *slot = layer;
    if (layer < u->layout.resident)
        return 0;
    if (umt5_weights_send(u, layer, err))
        return -1;
    *slot = u->layout.resident + r->window;
    bool by_main = r->by_main;
    umt5_weights_rest(u);
    if (by_main)
        return gpu_wait(u->nn->g, u->nn->stream, err) || load_layer(u, layer, *slot, err) ? -1 : 0;
    if (r->result) {
        *err = r->err;
        return -1;
    }
    return u->staging.at ? upload(u, r->window, err) : 0;
}

int umt5_weights_done(struct umt5 *u, size_t layer, struct cairn_error *err)
{
    size_t window = layer < u->layout.resident ? 0 : (layer - u->layout.resident) % u->layout.windows;
    if (layer < u->layout.resident || !u->staging.at)
        return 0;
    u->was_used[window] = true;
    return gpu_event_record(u->nn->g, u->used[window], u->nn->stream, err);
}

/* ---- all ---- */

int umt5_weights_open(struct umt5 *u, struct cairn_error *err)
{
    struct nn *nn = u->nn;
    list_params(u);
    if (weights_open(&u->weights, nn->g, &u->params, nn->storage, WEIGHTS_FP8, err) || load_resident(u, err))
        return -1;
    if (open_stream(u, err) || gpu_alloc(nn->g, GPU_MEM_DEVICE, u->layout.work, &u->work.memory, err))
        return -1;
    umt5_work_list(&u->work, &u->file.info, nn->storage, u->layout.rows);
    return source_unchanged(&u->file.source, err);
}

void umt5_weights_close(struct umt5 *u)
{
    struct gpu *g = u->nn->g;
    umt5_weights_rest(u);
    for (size_t i = 0; i < UMT5_WINDOWS; i++) {
        if (u->came[i])
            gpu_event_close(g, u->came[i]);
        if (u->used[i])
            gpu_event_close(g, u->used[i]);
    }
    if (u->up)
        gpu_stream_close(g, u->up);
    if (u->staging.at)
        gpu_staging_close(g, &u->staging);
    if (u->work.memory)
        gpu_free(g, GPU_MEM_DEVICE, u->work.memory);
    weights_close(&u->weights);
    params_release(&u->params);
}
