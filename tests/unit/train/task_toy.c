/* SPDX-License-Identifier: Apache-2.0 */
#include "task_toy.h"
#include "base/file.h"
#include "base/int.h"
#include "base/splitmix.h"
#include "gpu/gemm_cpu.h"
#include "gpu/kernels/random.h"
#include "nn/weights_init.h"
#include "train/config_rows.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

/* clang-format off */
static const char *const experts[] = { [TOY_LORA_SHARED] = "shared", [TOY_LORA_EACH] = "each", NULL };

#define KEY(...) CONFIG_KEY(struct toy_keys, __VA_ARGS__)
static const struct config_key keys[] = {
    KEY(model.layers, "3", "blocks of an expert", FROM(1, 100)),
    KEY(model.width, "32", "numbers of a position", FROM(1, 4096)),
    KEY(model.ffn, "0", "inner width of a block; 0: 4 x width", FROM(0, 16384)),
    KEY(model.switch_every, "1", "steps in a row that train the same expert", FROM(1, 1000)),
    KEY(model.boundary, "0.5", "the first expert sees clips with more noise than this", SHARE),
    KEY(lora.experts, "shared", "one LoRA for both experts, or one for each", .words = experts),
    KEY(data.clips, "16", "clips to learn from", FROM(2, 100000)),
    KEY(data.val_clips, "4", "clips for the evaluation", FROM(0, 100000)),
    KEY(data.channels, "6", "numbers of a position of a clip", FROM(1, 4096)),
    KEY(data.small, "4", "positions of half of the clips", FROM(1, 4096)),
    KEY(data.large, "8", "positions of the others", FROM(1, 4096)),
    KEY(sample.count, "1", "clips of a sample", FROM(1, 100)),
    KEY(sample.alone, "false", "samples are made without the workspace of a step"),
    KEY(cache.scale, "0.5", "what latents are multiplied by", ABOVE_0(100)),
};
/* clang-format on */

static const struct config_section sections[] = { { "cache", "what is prepared before the first step" } };

static const struct config_preset presets[] = {
    { "train.batch", "1" },     { "train.schedule", "constant" }, { "train.beta1", "0.9" },
    { "train.beta2", "0.999" }, { "train.weight_decay", "0.01" }, { "lora.rank", "4" },
};

static const struct toy_keys *keys_of(const struct job_config *c)
{
    return c->own;
}

static int check(const struct job_config *c, struct cairn_error *err)
{
    const struct toy_keys *k = keys_of(c);
    if (!c->lora.rank)
        return config_clash(c, "lora.rank", "lora.rank", err, "lora.rank is 0, but the experts are frozen");
    if (k->data.small > k->data.large)
        return config_clash(c, "data.small", "data.large", err, "data.small is above data.large");
    return 0;
}

static int fill(struct job_config *c, struct cairn_error *err)
{
    struct toy_keys *k = c->own;
    (void)err;
    if (!k->model.ffn)
        k->model.ffn = 4 * k->model.width;
    return 0;
}

static const struct config_schema schema = {
    .kind = "toy",
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .sections = sections,
    .n_sections = ARRAY_LEN(sections),
    .presets = presets,
    .n_presets = ARRAY_LEN(presets),
    .bytes = sizeof(struct toy_keys),
    .check = check,
    .fill = fill,
};

static int resolve(struct job_config *c, const struct task_env *e, struct cairn_error *err)
{
    (void)e;
    return config_fill(c, err);
}

/* ---- the helper network ---- */

enum { ENCODE, DECODE };

struct helper {
    struct nn *nn;
    struct params params;
    struct weights weights;
    void *clip, *latents; /* of the largest clip */
};

static void add_helper_params(struct params *p, const struct toy_keys *k)
{
    size_t width = (size_t)k->model.width, channels = (size_t)k->data.channels;
    params_add(p, PARAM_MATRIX, width, channels, "encode.weight");
    params_add(p, PARAM_MATRIX, channels, width, "decode.weight");
}

enum { ALIGN = 256 };

static size_t helper_bytes(const struct toy_keys *k, enum gpu_storage storage)
{
    struct params p = { 0 };
    size_t rows = (size_t)k->data.large, elem = storage_size(storage);
    add_helper_params(&p, k);
    size_t bytes = weights_size(&p, storage) + align_up(rows * (size_t)k->data.channels * elem, ALIGN) +
                   align_up(rows * (size_t)k->model.width * elem, ALIGN);
    params_release(&p);
    return bytes;
}

static void helper_close(struct helper *h)
{
    weights_close(&h->weights);
    if (h->clip)
        gpu_free(h->nn->g, GPU_MEM_DEVICE, h->clip);
    if (h->latents)
        gpu_free(h->nn->g, GPU_MEM_DEVICE, h->latents);
    params_release(&h->params);
    *h = (struct helper){ 0 };
}

/* helper_close also where it fails. */
static int helper_open(struct helper *h, const struct task_env *e, struct cairn_error *err)
{
    const struct toy_keys *k = keys_of(e->config);
    struct weights_init init;
    size_t rows = (size_t)k->data.large, elem = storage_size(e->nn->storage);
    *h = (struct helper){ .nn = e->nn };
    add_helper_params(&h->params, k);
    if (weights_open(&h->weights, e->nn->g, &h->params, e->nn->storage, WEIGHTS_INT8, err) ||
        gpu_alloc(e->nn->g, GPU_MEM_DEVICE, rows * (size_t)k->data.channels * elem, &h->clip, err) ||
        gpu_alloc(e->nn->g, GPU_MEM_DEVICE, rows * (size_t)k->model.width * elem, &h->latents, err) ||
        weights_init_open(&init, &h->params, &h->weights, (uint64_t)e->config->train.seed, err))
        return -1;
    int r = 0;
    for (size_t i = 0; i < h->params.n && !r; i++)
        r = weights_init_normal(&init, &h->params.list[i], 1, 1000 + i, err);
    weights_init_close(&init);
    return r;
}

static int helper_run(const struct helper *h, int way, size_t rows, float scale, struct cairn_error *err)
{
    const struct param *p = &h->params.list[way];
    struct nn_linear l = {
        .x = way == ENCODE ? h->clip : h->latents,
        .y = way == ENCODE ? h->latents : h->clip,
        .rows = rows,
        .in = p->columns,
        .out = p->rows,
        .alpha = scale,
    };
    void *matrix;
    nn_at(h->nn, "%s", p->name);
    if (weights_matrix(&h->weights, h->nn->stream, p, &matrix, err))
        return -1;
    l.w = matrix;
    return nn_linear(h->nn, &l, err);
}

/* ---- the task ---- */

struct toy_task {
    struct task task; /* first */
    struct toy *toy;
    char *latents; /* of all clips, in the storage format; NULL: it only makes samples */
    char *batch;   /* a micro-batch of them */
    float *times;
    size_t capacity; /* samples that batch and times have memory for */
};

static struct toy_task *toy_task_of(const struct task *t)
{
    return (struct toy_task *)t;
}

static const struct toy_keys *keys_here(const struct task *t)
{
    return keys_of(t->env.config);
}

static size_t elem_bytes(const struct task *t)
{
    return storage_size(t->env.nn->storage);
}

/* Clips of even numbers are small. */
static size_t extent_of(const struct task *t, uint64_t clip)
{
    return (size_t)(clip % 2 ? keys_here(t)->data.large : keys_here(t)->data.small);
}

static size_t clip_bytes(const struct task *t, size_t extent)
{
    return extent * (size_t)keys_here(t)->model.width * elem_bytes(t);
}

static size_t n_clips(const struct task *t)
{
    const struct toy_keys *k = keys_here(t);
    return (size_t)(k->data.clips + k->data.val_clips);
}

static const char *latents_of(const struct toy_task *t, size_t clip)
{
    return t->latents + clip * clip_bytes(&t->task, t->task.extent);
}

static void close_task(struct task *task)
{
    struct toy_task *t = toy_task_of(task);
    if (!t)
        return;
    model_close(task->model);
    free(t->latents);
    free(t->batch);
    free(t->times);
    free(t);
}

/* A clip is noise around a value of its own. */
static int encode_clip(struct toy_task *t, const struct helper *h, size_t clip, struct cairn_error *err)
{
    const struct toy_keys *k = keys_here(&t->task);
    struct nn *nn = h->nn;
    size_t rows = extent_of(&t->task, clip), n = rows * (size_t)k->data.channels;
    const struct gpu_kernel *kernel;
    struct random_args args = {
        .y = h->clip,
        .n = (k_i64)n,
        .seed = (uint64_t)t->task.env.config->train.seed,
        .stream = 1000000 + clip,
        .shift = (float)(clip / 2 % 3) - 1,
        .scale = 0.3f,
    };
    if (gpu_kernel(nn->g, "random_normal", nn->storage, &kernel, err) ||
        gpu_launch(nn->g, nn->stream, kernel, (struct gpu_grid){ .x = (unsigned)K_GROUPS(n) }, &args,
                   sizeof(args), err) ||
        helper_run(h, ENCODE, rows, (float)k->cache.scale, err))
        return -1;
    return gpu_download(nn->g, nn->stream, (void *)latents_of(t, clip), h->latents,
                        clip_bytes(&t->task, rows), err) ||
                   gpu_wait(nn->g, nn->stream, err)
               ? -1
               : 0;
}

static int prepare(struct toy_task *t, struct cairn_error *err)
{
    struct helper h;
    int r = helper_open(&h, &t->task.env, err);
    for (size_t i = 0; i < n_clips(&t->task) && !r; i++)
        r = encode_clip(t, &h, i, err);
    helper_close(&h);
    return r;
}

static int open_saved(const struct task_env *e, const struct task_saved *s, struct task **out,
                      struct cairn_error *err)
{
    const struct toy_keys *k = keys_of(e->config);
    struct toy_task *t = calloc(1, sizeof(*t));
    (void)s;
    if (!t)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    t->task = (struct task){
        .ops = &task_toy,
        .env = *e,
        .step_units = (double)(e->config->train.batch * e->config->train.accumulate),
        .speed = TASK_S_PER_IT,
        .extent = (size_t)k->data.large,
        .hidden_size = (size_t)k->model.width,
        .sample_alone = k->sample.alone,
    };
    *out = &t->task;
    return 0;
}

static int open_task(const struct task_env *e, struct task **out, struct cairn_error *err)
{
    struct task *task;
    if (open_saved(e, NULL, &task, err))
        return -1;
    struct toy_task *t = toy_task_of(task);
    if (e->only_plan) {
        *out = task;
        return 0;
    }
    t->latents = calloc(n_clips(task), clip_bytes(task, task->extent));
    if (!t->latents || prepare(t, err)) {
        if (!t->latents)
            cairn_fail(err, CAIRN_ENOMEM, "no memory for latents");
        close_task(task);
        return -1;
    }
    *out = task;
    return 0;
}

static int new_model(struct task *task, struct cairn_error *err)
{
    const struct job_config *c = task->env.config;
    const struct toy_keys *k = keys_of(c);
    struct toy_options o = {
        .layers = (size_t)k->model.layers,
        .width = (size_t)k->model.width,
        .ffn = (size_t)k->model.ffn,
        .quantize = c->model.quantize == CONFIG_QUANTIZE_INT8,
        .lora_per_expert = k->lora.experts == TOY_LORA_EACH,
        .lora = { .rank = (size_t)c->lora.rank,
                  .alpha = (float)c->lora.alpha,
                  .dropout = (float)c->lora.dropout,
                  .targets = c->lora.targets.item,
                  .n_targets = c->lora.targets.n },
    };
    struct toy_task *t = toy_task_of(task);
    if (toy_new(task->env.nn, &o, &t->toy, err))
        return -1;
    task->model = &t->toy->model;
    return 0;
}

static int reload_base(struct task *task, size_t base, struct cairn_error *err)
{
    return toy_init_expert(toy_task_of(task)->toy, base, (uint64_t)task->env.config->train.seed, err);
}

static int fill_model(struct task *task, struct cairn_error *err)
{
    return toy_init(toy_task_of(task)->toy, (uint64_t)task->env.config->train.seed, err);
}

/* ---- batches ---- */

/* Random bits that follow from the seed, a number and what they are for. */
static uint64_t mix(uint64_t seed, uint64_t number, uint64_t what)
{
    return splitmix_mix(splitmix_mix(splitmix_mix(seed) + number) + what);
}

static int reserve(struct toy_task *t, size_t samples, struct cairn_error *err)
{
    if (samples <= t->capacity)
        return 0;
    free(t->batch);
    free(t->times);
    t->batch = malloc(samples * clip_bytes(&t->task, t->task.extent));
    t->times = malloc(samples * sizeof(*t->times));
    t->capacity = t->batch && t->times ? samples : 0;
    return t->capacity ? 0 : cairn_fail(err, CAIRN_ENOMEM, "no memory for a batch of %zu clips", samples);
}

/* Sample i of the batch is clips[i]; all of them have one size. */
static int put_clips(struct toy_task *t, struct work *w, size_t slot, struct toy_batch b,
                     const uint64_t *clips, struct cairn_error *err)
{
    const struct job_config *c = t->task.env.config;
    float boundary = (float)keys_of(c)->model.boundary;
    size_t bytes = clip_bytes(&t->task, b.extent);
    for (size_t i = 0; i < b.samples; i++) {
        float share = (float)(mix((uint64_t)c->train.seed, b.first + i, 2) >> 40) / (1 << 24);
        t->times[i] = b.expert ? boundary * share : boundary + (1 - boundary) * share;
        memcpy(t->batch + i * bytes, latents_of(t, clips[i]), bytes);
    }
    b.latents = t->batch;
    b.times = t->times;
    return toy_put(w, slot, &b, err);
}

static size_t base_of_step(const struct task *t, uint64_t step)
{
    return step / (uint64_t)keys_here(t)->model.switch_every % TOY_EXPERTS;
}

static size_t set_of_step(const struct task *t, uint64_t step)
{
    return model_sets(t->model) == 1 ? 0 : base_of_step(t, step);
}

/* Of each batch, which is a forward pass where memory is not short. */
static uint64_t size_of_batch(const struct task *t, uint64_t batch)
{
    return mix((uint64_t)t->env.config->train.seed, batch, 0) % 2;
}

static double step_cost(const struct task *t, uint64_t step)
{
    const struct config_train *c = &t->env.config->train;
    double sum = 0;
    for (uint64_t i = 0; i < (uint64_t)c->accumulate; i++)
        sum += (double)extent_of(t, size_of_batch(t, step * (uint64_t)c->accumulate + i));
    return sum;
}

/* Each batch has clips of one size, however it is divided. */
static int put(struct task *task, struct work *w, size_t slot, uint64_t step, size_t micro, size_t n,
               struct cairn_error *err)
{
    struct toy_task *t = toy_task_of(task);
    const struct config_train *c = &task->env.config->train;
    uint64_t seed = (uint64_t)c->seed, half = (uint64_t)keys_here(task)->data.clips / 2;
    uint64_t first = step * (uint64_t)(c->batch * c->accumulate) + micro * n;
    uint64_t size = size_of_batch(task, first / (uint64_t)c->batch);
    CLEANUP(mem_free) uint64_t *clips = malloc(n * sizeof(*clips));
    if (!clips || reserve(t, n, err))
        return clips ? -1 : cairn_fail(err, CAIRN_ENOMEM, "no memory");
    for (size_t i = 0; i < n; i++)
        clips[i] = mix(seed, first + i, 1) % half * 2 + size;
    struct toy_batch b = {
        .samples = n, .extent = extent_of(task, size), .expert = base_of_step(task, step), .first = first
    };
    return put_clips(t, w, slot, b, clips, err);
}

static uint64_t val_samples(const struct task *t)
{
    return (uint64_t)keys_here(t)->data.val_clips;
}

static size_t base_of_val(const struct task *t, uint64_t index, size_t n)
{
    return index * n / (uint64_t)t->env.config->train.batch % 2;
}

/* The experts in turn, with small clips for one and large ones for the other. */
static int put_val(struct task *task, struct work *w, uint64_t index, size_t n, struct cairn_error *err)
{
    struct toy_task *t = toy_task_of(task);
    const struct toy_keys *k = keys_here(task);
    uint64_t half = (uint64_t)(k->data.val_clips + 1) / 2, begin = (uint64_t)k->data.clips;
    uint64_t first = index * n, size = base_of_val(task, index, n);
    CLEANUP(mem_free) uint64_t *clips = malloc(n * sizeof(*clips));
    if (!clips || reserve(t, n, err))
        return clips ? -1 : cairn_fail(err, CAIRN_ENOMEM, "no memory");
    for (size_t i = 0; i < n; i++) {
        uint64_t clip = begin + (first + i) % half * 2;
        clips[i] = clip % 2 == size ? clip : clip + 1 < n_clips(task) ? clip + 1 : clip - 1;
    }
    struct toy_batch b = {
        .samples = n, .extent = extent_of(task, size), .expert = size, .first = ((uint64_t)1 << 40) + first
    };
    return put_clips(t, w, 0, b, clips, err);
}

/* ---- samples ---- */

static struct work_options sample_work(const struct task *t)
{
    return (struct work_options){ .samples = 1, .extent = t->extent };
}

static struct work_bytes sample_bytes(const struct task *t)
{
    const struct toy_keys *k = keys_here(t);
    struct work_options o = sample_work(t);
    struct work_bytes b = t->model->ops->work_bytes(t->model, &o);
    size_t decode =
        gpu_info(t->env.nn->g)->api == GPU_API_HOST
            ? gemm_cpu_scratch(t->env.nn->g, t->extent, (size_t)k->data.channels, (size_t)k->model.width) *
                  sizeof(float)
            : 0;
    b.own += helper_bytes(k, t->env.nn->storage);
    b.packed = at_least(b.packed, decode);
    return b;
}

/* What the first expert makes of noise alone, decoded. */
static int make_clip(struct task *t, struct work *w, const struct helper *h, size_t index, void *into,
                     struct cairn_error *err)
{
    struct nn *nn = t->env.nn;
    const struct toy_keys *k = keys_here(t);
    size_t bytes = clip_bytes(t, t->extent), out = t->extent * (size_t)k->data.channels * elem_bytes(t);
    CLEANUP(mem_free) void *nothing = calloc(1, bytes);
    struct toy_batch b = { .samples = 1,
                           .extent = t->extent,
                           .first = ((uint64_t)1 << 41) + index,
                           .latents = nothing,
                           .times = (float[]){ 1 } };
    struct model_pass p = { .seed = (uint64_t)t->env.config->train.seed };
    if (!nothing)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    return toy_put(w, 0, &b, err) || t->model->ops->run(w, &p, NULL, err) ||
                   gpu_copy(nn->g, nn->stream, h->latents, toy_output(w), bytes, err) ||
                   helper_run(h, DECODE, t->extent, 1, err) ||
                   gpu_download(nn->g, nn->stream, into, h->clip, out, err) ||
                   gpu_wait(nn->g, nn->stream, err)
               ? -1
               : 0;
}

static int write_clips(struct task *t, struct work *w, const struct helper *h, const char *dir, uint64_t step,
                       struct str *text, struct cairn_error *err)
{
    const struct toy_keys *k = keys_here(t);
    size_t n = t->extent * (size_t)k->data.channels * elem_bytes(t);
    CLEANUP(mem_free) void *clip = malloc(n);
    if (!clip)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a clip");
    for (size_t i = 0; i < (size_t)k->sample.count; i++) {
        const char *path = arena_printf(t->env.arena, "%s/step-%" PRIu64 "-%zu.raw", dir, step, i);
        if (make_clip(t, w, h, i, clip, err) || file_write(path, clip, n, err))
            return -1;
        str_addf(text, "%s\n", path);
    }
    return 0;
}

/* The helper and the workspace are there for the time of the call. */
static int sample(struct task *t, const char *dir, uint64_t step, struct str *text, struct cairn_error *err)
{
    struct helper h;
    struct work *w = NULL;
    struct work_options o = sample_work(t);
    double seconds;
    if (task_use_base(t, 0, &seconds, err))
        return -1;
    int r = helper_open(&h, &t->env, err) || t->model->ops->work_open(t->model, &o, &w, err) ||
                    write_clips(t, w, &h, dir, step, text, err)
                ? -1
                : 0;
    t->model->ops->work_close(w);
    helper_close(&h);
    return r;
}

static void sample_close(struct task *t)
{
    (void)t;
}

static bool sample_is_open(const struct task *t)
{
    (void)t;
    return false;
}

/* ---- the rest ---- */

static int keep(const struct task *t, struct cairn_error *err)
{
    size_t bytes = n_clips(t) * clip_bytes(t, t->extent);
    return file_write(arena_printf(t->env.arena, "%s/latents.raw", t->env.dir), toy_task_of(t)->latents,
                      bytes, err);
}

static const char *label(const struct task *t, struct arena *a)
{
    const struct toy_keys *k = keys_here(t);
    return arena_printf(a, "toy %dx%d", (int)k->model.layers, (int)k->model.width);
}

static void summary(const struct task *t)
{
    message_say(&t->env.sink, "model     two experts, %zu LoRA%s", model_sets(t->model),
                model_sets(t->model) == 1 ? "" : "s");
}

const struct task_ops task_toy = {
    .schema = &schema,
    .resolve = resolve,
    .open = open_task,
    .open_saved = open_saved,
    .close = close_task,
    .new_model = new_model,
    .fill_model = fill_model,
    .set_of_step = set_of_step,
    .base_of_step = base_of_step,
    .base_of_val = base_of_val,
    .reload_base = reload_base,
    .step_cost = step_cost,
    .put = put,
    .val_samples = val_samples,
    .put_val = put_val,
    .sample_bytes = sample_bytes,
    .sample = sample,
    .sample_close = sample_close,
    .sample_is_open = sample_is_open,
    .keep = keep,
    .label = label,
    .summary = summary,
    .shrink_hint = "smaller clips",
    .sample_shrink_hint = "smaller samples",
};
