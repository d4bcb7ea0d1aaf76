/* SPDX-License-Identifier: Apache-2.0 */
#include "train/bench_wan.h"
#include "base/clock.h"
#include "base/str.h"
#include "chip/gfx_table.h"
#include "gpu/kernels/random.h"
#include "nn/wan_work.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 7, FEW = 3, RANK = 32, ROUNDS = 7, LEAST_ROUNDS = 2, MOST_OPS = 96, PATTERN = 1 << 20 };

const char *const bench_wan_models[] = { "14B", "5B", "1.3B", "tiny", NULL };
const char *const bench_wan_bases[] = { "device", "fp8", "int8", "host", NULL };

static const struct {
    size_t heads, width, ffn, channels;
} shapes[] = {
    { 40, 5120, 13824, 16 },
    { 24, 3072, 14336, 48 },
    { 12, 1536, 8960, 16 },
    { 2, 256, 512, 16 }, /* for a CPU */
};
enum { TINY = 3 };

/* ---- an open model ---- */

struct subject {
    struct gpu *g;
    struct nn nn;
    struct wan *m;
    struct work *work;
    struct weights grads;
    struct wan_size size;
};

static void close_subject(struct subject *s)
{
    if (s->work)
        s->m->model.ops->work_close(s->work);
    weights_close(&s->grads);
    if (s->m)
        model_close(&s->m->model);
    nn_close(&s->nn);
}

/* As train.dtype: auto. */
static enum gpu_storage storage_for(struct gpu *g)
{
    const struct gpu_info *i = gpu_info(g);
    return i->api == GPU_API_HOST ? GPU_F32 : i->chip && i->chip->train_f16 ? GPU_F16 : GPU_BF16;
}

/* 7800 tokens are those of 17 frames of 480 x 832; others lie in one row. */
static struct wan_size size_of(size_t tokens)
{
    return tokens == 7800 ? (struct wan_size){ 5, 60, 104 } : (struct wan_size){ 1, 2, 2 * tokens };
}

static int fill_normal(struct subject *s, void *at, size_t n, float scale, size_t stream,
                       struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct random_args args = { .y = at, .n = (k_i64)n, .seed = 1, .stream = stream, .scale = scale };
    return gpu_kernel(s->g, "random_normal", s->nn.storage, &k, err) ||
                   gpu_launch(s->g, NULL, k, (struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }, &args,
                              sizeof(args), err)
               ? -1
               : 0;
}

/* Codes of a quantized matrix, without those of NaN. */
static int fill_codes(struct subject *s, const struct weights *w, const struct param *p,
                      struct cairn_error *err)
{
    CLEANUP(mem_free) uint8_t *codes = malloc(PATTERN);
    CLEANUP(mem_free) float *scales = malloc(p->rows * sizeof(*scales));
    size_t n = p->rows * p->columns;
    uint32_t state = 1;
    enum dtype unused;
    bool on_host;
    char *at = weights_place(w, p, &unused, &on_host);
    if (!codes || !scales)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", p->name);
    for (size_t i = 0; i < PATTERN; i++) {
        state = state * 1664525 + 1013904223;
        codes[i] = (uint8_t)(state >> 24) & (w->format == WEIGHTS_FP8 ? 0xbf : 0xff); /* fp8: below 2 */
    }
    for (size_t i = 0; i < p->rows; i++)
        scales[i] = (w->format == WEIGHTS_FP8 ? 1.0f : 1.0f / 64) / sqrtf((float)p->columns);
    for (size_t done = 0; done < n; done += PATTERN)
        if (gpu_upload(s->g, NULL, at + done, codes, n - done < PATTERN ? n - done : PATTERN, err))
            return -1;
    return gpu_upload(s->g, NULL, w->scales + p->scale_at, scales, p->rows * sizeof(*scales), err) ||
                   gpu_wait(s->g, NULL, err)
               ? -1
               : 0;
}

static int fill_vector(const struct weights *w, const struct param *p, struct cairn_error *err)
{
    size_t n = p->rows * p->columns;
    CLEANUP(mem_free) float *x = malloc(n * sizeof(*x));
    bool is_scale = strstr(p->name, "norm") && str_ends(p->name, ".weight");
    if (!x)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", p->name);
    for (size_t i = 0; i < n; i++)
        x[i] = is_scale ? 1 : 0.01f * (float)(i % 7);
    return weights_put(w, p, x, err);
}

static int fill_params(struct subject *s, const struct params *all, const struct weights *w,
                       struct cairn_error *err)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct param *p = &all->list[i];
        enum dtype unused;
        bool on_host;
        int r = p->kind == PARAM_VECTOR ? fill_vector(w, p, err)
                : p->kind == PARAM_QUANTIZED
                    ? fill_codes(s, w, p, err)
                    : fill_normal(s, weights_place(w, p, &unused, &on_host), p->rows * p->columns,
                                  1 / sqrtf((float)p->columns), i, err);
        if (r)
            return -1;
    }
    return gpu_wait(s->g, NULL, err);
}

static int put_batch(struct subject *s, struct cairn_error *err)
{
    const struct wan_shape *shape = &s->m->shape;
    size_t cells = s->size.frames * s->size.height * s->size.width, n = cells * shape->in;
    size_t text = shape->text_rows * shape->text_width, most = n > text ? n : text;
    CLEANUP(mem_free) float *x = malloc(most * sizeof(*x));
    float time = 500;
    uint32_t state = 1;
    if (!x)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a batch");
    for (size_t i = 0; i < most; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
    struct wan_batch b = { .samples = 1, .size = s->size, .x = x, .target = x, .times = &time, .text = x };
    return wan_put(s->work, 0, &b, err) || gpu_wait(s->g, s->nn.stream, err) ? -1 : 0;
}

/* What is measured: which model, and where its frozen blocks are. */
struct what {
    size_t model, tokens;
    const char *base;
    double seconds;
};

static struct wan_shape shape_of(size_t model, size_t layers)
{
    struct wan_shape s = wan_shape_common();
    s.layers = layers;
    s.heads = shapes[model].heads;
    s.width = shapes[model].width;
    s.ffn = shapes[model].ffn;
    s.in = s.out = shapes[model].channels;
    if (model == TINY)
        s.text_width = 256, s.text_rows = 64;
    return s;
}

static int open_subject(struct subject *s, struct gpu *g, const struct what *what, size_t layers,
                        struct cairn_error *err)
{
    const struct lora_options lora = { .rank = RANK, .alpha = RANK };
    const struct model_layout streamed = { .streamed = MODEL_ALL_BLOCKS };
    struct wan_shape shape = shape_of(what->model, layers);
    struct wan_options o = {
        .experts = 1,
        .quantize = str_eq(what->base, "fp8") || str_eq(what->base, "int8"),
        .format = str_eq(what->base, "fp8") ? WEIGHTS_FP8 : WEIGHTS_INT8,
        .lora = &lora,
    };
    struct work_options work = { .samples = 1, .extent = what->tokens, .train = true, .recompute = true };
    *s = (struct subject){ .g = g, .size = size_of(what->tokens) };
    if (nn_open(&s->nn, g, storage_for(g), err) || wan_new(&s->nn, &shape, &o, &s->m, err) ||
        model_alloc(&s->m->model, NULL, err) ||
        weights_open(&s->grads, g, &s->m->loras[0].params, GPU_F32, WEIGHTS_INT8, err) ||
        fill_params(s, &s->m->params[0], &s->m->weights[0], err) ||
        fill_params(s, &s->m->loras[0].params, &s->m->loras[0].weights, err) ||
        (str_eq(what->base, "host") && model_move_blocks(&s->m->model, &streamed, err)))
        return -1;
    return s->m->model.ops->work_open(&s->m->model, &work, &s->work, err) || put_batch(s, err) ? -1 : 0;
}

/* ---- time ---- */

static int pass(struct subject *s, double *ms, struct cairn_error *err)
{
    struct model_pass p = { .scale = 1, .learn = true };
    double start = clock_s();
    if (s->m->model.ops->run(s->work, &p, &s->grads, err) || gpu_wait(s->g, s->nn.stream, err))
        return -1;
    *ms = 1000 * (clock_s() - start);
    return 0;
}

static int best_pass(struct subject *s, double seconds, double *best, struct cairn_error *err)
{
    double ms, spent = 0;
    *best = INFINITY;
    if (pass(s, &ms, err) || pass(s, &ms, err)) /* the first compiles and tunes */
        return -1;
    for (int i = 0; i < ROUNDS && (i < LEAST_ROUNDS || spent < 1000 * seconds); i++) {
        if (pass(s, &ms, err))
            return -1;
        *best = ms < *best ? ms : *best;
        spent += ms;
    }
    return 0;
}

/* ---- ops ---- */

struct op_list {
    struct nn_watcher watcher;
    struct bench_op list[MOST_OPS];
    size_t n;
    double last;
};

/* The part of an inner block that an op belongs to; NULL: of none.  The first and the last block do less. */
static const char *inner_part(const char *where)
{
    size_t layer;
    int used = 0;
    if (sscanf(where, "blocks.%zu.%n", &layer, &used) != 1 || !used || layer == 0 || layer == MANY - 1)
        return NULL;
    return where + used;
}

/* Ops of one name in a part of a block are told apart by their size. */
static struct bench_op *op_of(struct op_list *l, const char *op, const char *part, double flops, double bytes)
{
    for (size_t i = 0; i < l->n; i++) {
        struct bench_op *at = &l->list[i];
        if (str_eq(at->op, op) && str_eq(at->part, part) && at->flops == flops && at->bytes == bytes)
            return at;
    }
    if (l->n == MOST_OPS)
        return NULL;
    struct bench_op *at = &l->list[l->n++];
    *at = (struct bench_op){ .flops = flops, .bytes = bytes };
    snprintf(at->op, sizeof(at->op), "%s", op);
    snprintf(at->part, sizeof(at->part), "%s", part);
    return at;
}

static int after_op(struct nn_watcher *w, struct nn *nn, const struct nn_event *e, struct cairn_error *err)
{
    struct op_list *l = (struct op_list *)w;
    if (gpu_wait(nn->g, nn->stream, err))
        return -1;
    const char *part = inner_part(e->where);
    struct bench_op *at = part ? op_of(l, e->op, part, e->flops, e->bytes) : NULL;
    if (at) {
        at->calls++;
        at->ms += 1000 * (clock_s() - l->last);
    }
    l->last = clock_s();
    return 0;
}

static int watch_pass(struct subject *s, struct op_list *l, struct cairn_error *err)
{
    double ms;
    *l = (struct op_list){ .watcher = { after_op }, .last = clock_s() };
    s->nn.watcher = &l->watcher;
    int r = pass(s, &ms, err);
    s->nn.watcher = NULL;
    return r;
}

static int by_time(const void *a, const void *b)
{
    const struct bench_op *x = a, *y = b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

/* The ops of one block. */
static int ops_of_block(const struct op_list *l, struct bench_result *out, struct cairn_error *err)
{
    out->ops = calloc(l->n + 1, sizeof(*out->ops));
    if (!out->ops)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the ops");
    for (size_t i = 0; i < l->n; i++) {
        struct bench_op op = l->list[i];
        op.calls /= MANY - 2;
        op.ms /= MANY - 2;
        op.flops *= op.calls;
        op.bytes *= op.calls;
        out->ops[out->n_ops++] = op;
    }
    qsort(out->ops, out->n_ops, sizeof(*out->ops), by_time);
    return 0;
}

/* ---- operations ---- */

/* Of a block: forward, the same again but for the last linear, and backward to its input and its LoRA. */
static double flops_of(const struct wan_shape *s, size_t tokens)
{
    double t = (double)tokens, d = (double)s->width, f = (double)s->ffn, text = (double)s->text_rows;
    double wide = 2 * t * (6 * d * d + 2 * d * f), keys = 2 * text * 2 * d * d, last = 2 * t * d * f;
    double lora = 2 * RANK * (t * (6 * 2 * d + 2 * (d + f)) + text * 2 * 2 * d);
    double attention = 4 * t * d * (t + text);
    return 2 * (wide + keys + attention) - last + wide + 2.5 * attention + 4 * lora;
}

/* ---- rows ---- */

/* Milliseconds of a pass; ops may be NULL. */
static int measure(struct gpu *g, const struct what *what, size_t layers, double *ms, struct op_list *ops,
                   struct cairn_error *err)
{
    CLEANUP(close_subject) struct subject s = { 0 };
    if (open_subject(&s, g, what, layers, err) || best_pass(&s, what->seconds, ms, err))
        return -1;
    return ops ? watch_pass(&s, ops, err) : 0;
}

static int run_row(struct gpu *g, const struct what *what, bool profile, struct bench_result *out,
                   struct cairn_error *err)
{
    struct op_list ops;
    struct wan_shape shape = shape_of(what->model, MANY);
    double many, few;
    if (measure(g, what, MANY, &many, profile ? &ops : NULL, err) || measure(g, what, FEW, &few, NULL, err))
        return -1;
    *out = (struct bench_result){
        .group = "wan",
        .name = bench_wan_models[what->model],
        .format = gpu_storage_name(storage_for(g)),
        .way = what->base,
        .sizes = { (long long)what->tokens, (long long)shapes[what->model].width,
                   (long long)shapes[what->model].ffn, (long long)shapes[what->model].heads },
        /* On a busy machine a small difference drowns: then it is a share of the whole pass. */
        .ms = many > few ? (many - few) / (MANY - FEW) : many / MANY,
        .is_flops = true,
    };
    out->rate = flops_of(&shape, what->tokens) / out->ms / 1e9;
    snprintf(out->shape, sizeof(out->shape), "%zu x %zu", what->tokens, shapes[what->model].width);
    return profile ? ops_of_block(&ops, out, err) : 0;
}

static bool is_model_asked(const struct bench_wan_options *o, const struct gpu *g, size_t i)
{
    bool cpu = gpu_info(g)->api == GPU_API_HOST;
    return o->model ? str_eq(o->model, bench_wan_models[i]) : cpu == (i == TINY);
}

static size_t list_asked(const struct gpu *g, const struct bench_wan_options *o, struct what *all)
{
    size_t n = 0;
    for (size_t i = 0; bench_wan_models[i]; i++)
        for (size_t k = 0; is_model_asked(o, g, i) && bench_wan_bases[k]; k++)
            if (!o->base || str_eq(o->base, bench_wan_bases[k]))
                all[n++] = (struct what){ .model = i,
                                          .tokens = o->tokens   ? o->tokens
                                                    : i == TINY ? 64
                                                                : 7800,
                                          .base = bench_wan_bases[k],
                                          .seconds = o->seconds };
    return n;
}

static void compare(struct bench_result *all, size_t n, double ceiling)
{
    for (size_t i = 0; i < n; i++) {
        all[i].ceiling = ceiling;
        for (size_t k = 0; k < n; k++)
            if (all[k].name == all[i].name && str_eq(all[k].way, "device"))
                all[i].relative = all[k].ms / all[i].ms;
    }
}

int bench_wan_run(struct gpu *g, const struct bench_wan_options *o, struct bench_result **out, size_t *n,
                  struct cairn_error *err)
{
    struct what asked[ARRAY_LEN(shapes) * ARRAY_LEN(bench_wan_bases)];
    size_t all = list_asked(g, o, asked);
    struct bench_result *results = calloc(all + 1, sizeof(*results));
    double ceiling;
    *n = 0;
    if (!results)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the results");
    int r = bench_gemm_rate(g, storage_for(g), o->seconds, &ceiling, err);
    for (size_t i = 0; i < all && !r && !(o->stop && o->stop()); i++) {
        if (o->watch)
            o->watch(bench_wan_models[asked[i].model], asked[i].base, i, all);
        r = run_row(g, &asked[i], o->profile, &results[*n], err);
        *n += !r;
    }
    if (r) {
        bench_results_free(results, all);
        return -1;
    }
    compare(results, *n, ceiling);
    *out = results;
    return 0;
}
