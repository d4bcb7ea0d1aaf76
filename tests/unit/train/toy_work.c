/* SPDX-License-Identifier: Apache-2.0
 * Workspaces of the toy model, and passes through it. */
#include "base/int.h"
#include "gpu/gemm_cpu.h"
#include "gpu/kernels/random.h"
#include "gpu/save_ring.h"
#include "nn/work_memory.h"
#include "toy_inside.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const float epsilon = 1e-5f;

/* What a block computes on the way. */
struct inside {
    void *norm, *fc, *act;
    float *mean, *rstd;
};

struct slot {
    struct toy_batch batch; /* its pointers are the caller's, and not used */
    void *latents;
    float *keep, *add; /* the share of the clip and of the noise, a vector for each sample */
    float *parts;      /* of the loss */
    char *staging;
};

struct toy_work {
    struct toy *m;
    struct work_options o;
    size_t rows; /* of the largest batch */
    void *memory;
    struct slot *slots;
    struct gpu_staging staging, losses;
    void *noise, *y, *dx, *d_inner, *d_norm;
    float *target;
    void **x; /* the input of each block, and the output of the last */
    struct inside *inside;
    struct lora_scratch lora;
    struct save_ring ring; /* of x, but for the last */
};

static struct toy_work *work_of(const struct work *w)
{
    return (struct toy_work *)w;
}

/* ---- workspaces ---- */

static size_t elem_bytes(const struct toy *m)
{
    return storage_size(m->model.nn->storage);
}

static size_t parts_most(const struct toy_work *w)
{
    return nn_square_error_parts(w->o.extent * w->m->o.width);
}

static void plan_inside(struct work_memory *p, const struct toy_work *w, struct inside *k)
{
    size_t elem = elem_bytes(w->m);
    k->norm = work_memory_add(p, w->rows * w->m->o.width * elem);
    k->fc = work_memory_add(p, w->rows * w->m->o.ffn * elem);
    k->act = work_memory_add(p, w->rows * w->m->o.ffn * elem);
    k->mean = work_memory_add(p, w->rows * sizeof(float));
    k->rstd = work_memory_add(p, w->rows * sizeof(float));
}

static bool saves_on_host(const struct toy_work *w)
{
    return w->o.train && w->o.inputs_on_host;
}

static size_t input_bytes(const struct toy_work *w)
{
    return w->rows * w->m->o.width * elem_bytes(w->m);
}

static void plan_work(struct work_memory *p, struct toy_work *w)
{
    const struct toy *m = w->m;
    const struct lora *l = &m->loras[0];
    size_t elem = elem_bytes(m), narrow = w->rows * m->o.width * elem, wide = w->rows * m->o.ffn * elem;
    size_t vectors = w->o.samples * m->o.width * sizeof(float);
    for (size_t i = 0; i < w->o.slots; i++) {
        w->slots[i].latents = work_memory_add(p, narrow);
        w->slots[i].keep = work_memory_add(p, vectors);
        w->slots[i].add = work_memory_add(p, vectors);
        w->slots[i].parts = work_memory_add(p, w->o.samples * parts_most(w) * sizeof(float));
    }
    w->noise = work_memory_add(p, narrow);
    w->target = work_memory_add(p, w->rows * m->o.width * sizeof(float));
    w->y = work_memory_add(p, narrow);
    for (size_t i = 0; i <= m->o.layers; i++)
        if (i == m->o.layers || !saves_on_host(w))
            w->x[i] = i < 2 || w->o.train ? work_memory_add(p, narrow) : w->x[i - 2];
    for (size_t i = 0; i < m->o.layers; i++)
        if (!i || (w->o.train && !w->o.recompute))
            plan_inside(p, w, &w->inside[i]);
        else
            w->inside[i] = w->inside[0];
    w->lora.small = work_memory_add(p, w->rows * l->rank * elem);
    w->lora.small_back = work_memory_add(p, w->rows * l->rank * elem);
    if (!w->o.train)
        return;
    if (l->dropout > 0)
        w->lora.dropped = work_memory_add(p, 2 * w->rows * l->most_in * elem);
    w->dx = work_memory_add(p, narrow);
    w->d_inner = work_memory_add(p, wide);
    w->d_norm = work_memory_add(p, narrow);
}

void toy_work_close(struct work *work)
{
    struct toy_work *w = work_of(work);
    if (!w)
        return;
    struct gpu *g = w->m->model.nn->g;
    save_ring_close(&w->ring);
    if (w->memory)
        gpu_free(g, GPU_MEM_DEVICE, w->memory);
    gpu_staging_close(g, &w->staging);
    gpu_staging_close(g, &w->losses);
    free(w->slots);
    free(w->x);
    free(w->inside);
    free(w);
}

static struct toy_work *new_work(struct toy *m, const struct work_options *o)
{
    struct toy_work *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->m = m;
    w->o = *o;
    w->o.slots = o->slots ? o->slots : 1;
    w->rows = o->samples * o->extent;
    w->slots = calloc(w->o.slots, sizeof(*w->slots));
    w->x = calloc(m->o.layers + 1, sizeof(*w->x));
    w->inside = calloc(m->o.layers, sizeof(*w->inside));
    if (w->slots && w->x && w->inside)
        return w;
    toy_work_close((struct work *)w);
    return NULL;
}

static size_t packed_bytes(const struct toy *m, const struct work_options *o)
{
    size_t most = 0;
    if (gpu_info(m->model.nn->g)->api != GPU_API_HOST)
        return 0;
    for (size_t i = 0; i <= TOY_LINEARS; i++) {
        bool behind = i == TOY_LINEARS;
        struct lora_linear l = {
            .rows = o->samples * o->extent,
            .in = behind ? m->o.width : toy_linear_in(m, i),
            .out = behind ? m->o.width : toy_linear_out(m, i),
            .rank = m->loras[0].rank,
            .train = o->train,
        };
        size_t n = lora_packed_elements(m->model.nn, &l);
        most = at_least(most, n);
    }
    return most * sizeof(float);
}

struct work_bytes toy_work_bytes(const struct model *m, const struct work_options *o)
{
    struct toy_work *w = new_work((struct toy *)m, o);
    struct work_memory p = { 0 };
    struct work_bytes b = { .packed = packed_bytes((struct toy *)m, o) };
    if (w)
        plan_work(&p, w);
    b.own = p.used;
    if (w && saves_on_host(w)) {
        b.own += save_ring_device_bytes(w->m->o.layers, input_bytes(w));
        b.host = save_ring_host_bytes(w->m->o.layers, input_bytes(w));
    }
    toy_work_close((struct work *)w);
    return b;
}

static size_t slot_bytes(const struct toy_work *w)
{
    return w->rows * w->m->o.width * elem_bytes(w->m) + 2 * w->o.samples * w->m->o.width * sizeof(float);
}

static int take_memory(struct toy_work *w, struct cairn_error *err)
{
    struct nn *nn = w->m->model.nn;
    size_t packed = packed_bytes(w->m, &w->o);
    struct work_memory counted = { 0 }, p = { 0 };
    plan_work(&counted, w);
    if ((saves_on_host(w) && save_ring_open(&w->ring, nn->g, w->m->o.layers, input_bytes(w), w->x, err)) ||
        gpu_alloc(nn->g, GPU_MEM_DEVICE, counted.used, &w->memory, err) ||
        gpu_staging_open(nn->g, w->o.slots * slot_bytes(w), &w->staging, err) ||
        gpu_staging_open(nn->g, w->o.samples * parts_most(w) * sizeof(float), &w->losses, err) ||
        (packed && gemm_cpu_reserve(nn->g, packed / sizeof(float), err)))
        return -1;
    nn->packed_bytes = at_least(nn->packed_bytes, packed);
    p.base = w->memory;
    plan_work(&p, w);
    for (size_t i = 0; i < w->o.slots; i++)
        w->slots[i].staging = (char *)w->staging.at + i * slot_bytes(w);
    return 0;
}

int toy_work_open(struct model *m, const struct work_options *o, struct work **out, struct cairn_error *err)
{
    struct toy_work *w = new_work((struct toy *)m, o);
    if (!w)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    if (take_memory(w, err)) {
        toy_work_close((struct work *)w);
        return -1;
    }
    *out = (struct work *)w;
    return 0;
}

int toy_put(struct work *work, size_t slot, const struct toy_batch *b, struct cairn_error *err)
{
    struct toy_work *w = work_of(work);
    struct nn *nn = w->m->model.nn;
    size_t width = w->m->o.width, bytes = b->samples * b->extent * width * elem_bytes(w->m);
    assert(slot < w->o.slots && b->samples <= w->o.samples && b->extent <= w->o.extent);
    struct slot *s = &w->slots[slot];
    float *keep = (float *)(void *)s->staging, *add = keep + b->samples * width;
    char *latents = (char *)(add + b->samples * width);
    s->batch = *b;
    for (size_t i = 0; i < b->samples * width; i++) {
        add[i] = b->times[i / width];
        keep[i] = 1 - add[i];
    }
    memcpy(latents, b->latents, bytes);
    size_t vectors = b->samples * width * sizeof(float);
    return gpu_upload(nn->g, nn->stream, s->keep, keep, vectors, err) ||
                   gpu_upload(nn->g, nn->stream, s->add, add, vectors, err) ||
                   gpu_upload(nn->g, nn->stream, s->latents, latents, bytes, err)
               ? -1
               : 0;
}

const void *toy_output(const struct work *w)
{
    return work_of(w)->y;
}

/* ---- a pass ---- */

struct pass {
    struct toy_work *w;
    const struct model_pass *p;
    const struct slot *slot;
    const struct toy_expert *expert;
    const struct lora *lora;
    const struct lora_site *sites;
    const struct weights *grads;
    size_t rows;
};

static struct nn *nn_of(const struct pass *at)
{
    return at->w->m->model.nn;
}

/* The same numbers twice: as an input, and in f32 to compare with. */
static int add_noise(const struct pass *at, struct cairn_error *err)
{
    struct toy_work *w = at->w;
    struct nn *nn = nn_of(at);
    const struct toy_batch *b = &at->slot->batch;
    size_t n = b->extent * w->m->o.width;
    for (size_t i = 0; i < 2 * b->samples; i++) {
        bool is_target = i % 2;
        const struct gpu_kernel *k;
        struct random_args args = {
            .y =
                is_target ? (char *)(w->target + i / 2 * n) : (char *)w->noise + i / 2 * n * elem_bytes(w->m),
            .n = (k_i64)n,
            .seed = at->p->seed,
            .stream = b->first + i / 2,
            .scale = 1,
        };
        if (gpu_kernel(nn->g, "random_normal", is_target ? GPU_F32 : nn->storage, &k, err) ||
            gpu_launch(nn->g, nn->stream, k, (struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }, &args,
                       sizeof(args), err))
            return -1;
    }
    struct nn_gate keep = { .y = w->x[0],
                            .z = at->slot->latents,
                            .gate = at->slot->keep,
                            .rows = at->rows,
                            .columns = w->m->o.width,
                            .rows_per_gate = b->extent };
    struct nn_gate add = keep;
    add.x = w->x[0];
    add.z = w->noise;
    add.gate = at->slot->add;
    return nn_gate(nn, &keep, err) || nn_gate(nn, &add, err) ? -1 : 0;
}

static struct nn_drop drop_of(const struct pass *at, size_t linear)
{
    return (struct nn_drop){
        .rate = at->p->learn ? at->lora->dropout : 0,
        .seed = at->p->seed,
        .stream = at->p->stream * at->w->m->o.layers * TOY_LINEARS + linear,
    };
}

static struct lora_call call_of(const struct pass *at, size_t linear, const void *x,
                                const struct nn_drop *drop)
{
    return (struct lora_call){
        .lora = at->lora,
        .site = &at->sites[linear],
        .scratch = &at->w->lora,
        .drop = drop,
        .x = x,
        .rows = at->rows,
        .in = toy_linear_in(at->w->m, linear),
        .out = toy_linear_out(at->w->m, linear),
    };
}

static int forward_linear(const struct pass *at, size_t linear, const void *x, const void *residual, void *y,
                          struct cairn_error *err)
{
    struct nn *nn = nn_of(at);
    struct nn_drop drop = drop_of(at, linear);
    struct lora_call call = call_of(at, linear, x, &drop);
    struct nn_linear l = {
        .x = x, .y = y, .residual = residual, .rows = at->rows, .in = call.in, .out = call.out
    };
    void *matrix;
    nn_at(nn, "%s", at->expert->params.list[linear].name);
    if (weights_matrix(&at->expert->weights, nn->stream, &at->expert->params.list[linear], &matrix, err))
        return -1;
    l.w = matrix;
    return nn_linear(nn, &l, err) || lora_forward(nn, &call, y, err) ? -1 : 0;
}

static int back_linear(const struct pass *at, size_t linear, const void *x, const void *dy, void *dx,
                       struct cairn_error *err)
{
    struct nn *nn = nn_of(at);
    struct nn_drop drop = drop_of(at, linear);
    struct lora_call call = call_of(at, linear, x, &drop);
    struct nn_linear_back l = { .dy = dy, .dx = dx, .rows = at->rows, .in = call.in, .out = call.out };
    void *matrix;
    nn_at(nn, "%s", at->expert->params.list[linear].name);
    if (weights_matrix(&at->expert->weights, nn->stream, &at->expert->params.list[linear], &matrix, err))
        return -1;
    l.w = matrix;
    return nn_linear_back(nn, &l, err) || lora_back(nn, &call, dy, dx, at->grads, err) ? -1 : 0;
}

static struct nn_norm norm_of(const struct pass *at, size_t block)
{
    const struct inside *k = &at->w->inside[block];
    return (struct nn_norm){
        .kind = NN_NORM_RMS,
        .x = at->w->x[block],
        .y = k->norm,
        .mean = k->mean,
        .rstd = k->rstd,
        .rows = at->rows,
        .columns = at->w->m->o.width,
        .epsilon = epsilon,
    };
}

static int block_inside(const struct pass *at, size_t block, struct cairn_error *err)
{
    const struct inside *k = &at->w->inside[block];
    struct nn_norm norm = norm_of(at, block);
    nn_at(nn_of(at), "blocks.%zu", block);
    return nn_norm(nn_of(at), &norm, err) ||
                   forward_linear(at, block * TOY_LINEARS, k->norm, NULL, k->fc, err) ||
                   nn_gelu(nn_of(at), k->act, k->fc, at->rows * at->w->m->o.ffn, err)
               ? -1
               : 0;
}

static int forward(const struct pass *at, struct cairn_error *err)
{
    struct toy_work *w = at->w;
    struct nn *nn = nn_of(at);
    const struct weights *weights = &at->expert->weights;
    size_t layers = w->m->o.layers;
    for (size_t i = 0; i < layers; i++)
        if (weights_need(weights, nn->stream, i, i + 1 < layers ? i + 1 : i, err) ||
            save_ring_next(&w->ring, i, nn->stream, err) || block_inside(at, i, err) ||
            forward_linear(at, i * TOY_LINEARS + 1, w->inside[i].act, w->x[i], w->x[i + 1], err) ||
            save_ring_save(&w->ring, i, nn->stream, at->grads != NULL, err) ||
            weights_passed(weights, nn->stream, i, err))
            return -1;
    struct nn_linear last = {
        .x = w->x[layers], .y = w->y, .rows = at->rows, .in = w->m->o.width, .out = w->m->o.width
    };
    void *matrix;
    if (weights_matrix(weights, nn->stream, &at->expert->params.list[layers * TOY_LINEARS], &matrix, err))
        return -1;
    last.w = matrix;
    nn_at(nn, "out");
    return nn_linear(nn, &last, err);
}

static int block_back(const struct pass *at, size_t block, struct cairn_error *err)
{
    struct toy_work *w = at->w;
    const struct inside *k = &w->inside[block];
    struct nn_norm norm = norm_of(at, block);
    struct nn_norm_back back = { .dy = w->d_norm, .dx = w->dx, .add = true };
    size_t linear = block * TOY_LINEARS;
    return back_linear(at, linear + 1, k->act, w->dx, w->d_inner, err) ||
                   nn_gelu_back(nn_of(at), w->d_inner, w->d_inner, k->fc, at->rows * w->m->o.ffn, err) ||
                   back_linear(at, linear, k->norm, w->d_inner, w->d_norm, err) ||
                   nn_norm_back(nn_of(at), &norm, &back, err)
               ? -1
               : 0;
}

/* The gradient of the output is in y. */
static int backward(const struct pass *at, struct cairn_error *err)
{
    struct toy_work *w = at->w;
    struct nn *nn = nn_of(at);
    const struct weights *weights = &at->expert->weights;
    size_t layers = w->m->o.layers, width = w->m->o.width;
    struct nn_linear_back last = { .dy = w->y, .dx = w->dx, .rows = at->rows, .in = width, .out = width };
    void *matrix;
    if (weights_matrix(weights, nn->stream, &at->expert->params.list[layers * TOY_LINEARS], &matrix, err))
        return -1;
    last.w = matrix;
    if (nn_linear_back(nn, &last, err))
        return -1;
    for (size_t i = layers; i-- > 0;) {
        bool again = w->o.recompute && i + 1 < layers; /* the last block's are still there */
        if (weights_need(weights, nn->stream, i, i ? i - 1 : 0, err) ||
            save_ring_need(&w->ring, i, nn->stream, err) || (again && block_inside(at, i, err)) ||
            block_back(at, i, err) || save_ring_passed(&w->ring, i, nn->stream, err) ||
            weights_passed(weights, nn->stream, i, err))
            return -1;
    }
    return 0;
}

int toy_run(struct work *work, const struct model_pass *p, const struct weights *grads,
            struct cairn_error *err)
{
    struct toy_work *w = work_of(work);
    const struct toy_batch *b = &w->slots[p->slot].batch;
    size_t n = b->extent * w->m->o.width, set = w->m->o.lora_per_expert ? b->expert : 0;
    struct pass at = {
        .w = w,
        .p = p,
        .slot = &w->slots[p->slot],
        .expert = &w->m->experts[b->expert],
        .lora = &w->m->loras[set],
        .sites = w->m->sites[set],
        .grads = grads,
        .rows = b->samples * b->extent,
    };
    struct nn_square_error loss = {
        .parts = at.slot->parts,
        .dx = grads ? w->y : NULL,
        .x = w->y,
        .target = w->target,
        .samples = b->samples,
        .n = n,
        .scale = p->scale / (float)n,
    };
    size_t bytes = at.rows * w->m->o.width * storage_size(nn_of(&at)->storage);
    if (save_ring_first(&w->ring, bytes, nn_of(&at)->stream, err) || add_noise(&at, err) ||
        forward(&at, err) || nn_square_error(nn_of(&at), &loss, err))
        return -1;
    return grads ? backward(&at, err) : 0;
}

int toy_loss(struct work *work, size_t slot, double *sum, double *units, struct cairn_error *err)
{
    struct toy_work *w = work_of(work);
    struct nn *nn = w->m->model.nn;
    const struct toy_batch *b = &w->slots[slot].batch;
    size_t n = b->extent * w->m->o.width, parts = b->samples * nn_square_error_parts(n);
    const float *got = w->losses.at;
    if (gpu_download(nn->g, nn->stream, w->losses.at, w->slots[slot].parts, parts * sizeof(float), err) ||
        gpu_wait(nn->g, nn->stream, err))
        return -1;
    *sum = 0;
    *units = (double)b->samples;
    for (size_t i = 0; i < parts; i++)
        *sum += (double)got[i] / (double)n;
    return 0;
}
