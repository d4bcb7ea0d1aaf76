/* SPDX-License-Identifier: Apache-2.0 */
#include "train/task_gpt.h"
#include "base/file.h"
#include "nn/gpt_file.h"
#include "text/data.h"
#include "train/checkpoint_file.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gpt_task {
    struct task task; /* first */
    struct tokenizer *tokenizer;
    struct data *data; /* NULL: the task only samples or plans */
    struct gpt *gpt;
    struct sampler *sampler;
    int32_t *ids, *targets; /* of a micro-batch */
    size_t capacity;        /* tokens in them */
};

static struct gpt_task *gpt_task_of(const struct task *t)
{
    return (struct gpt_task *)t;
}

static const struct job_config *config_of(const struct gpt_task *t)
{
    return t->task.env.config;
}

/* ---- the shape of the model ---- */

/* A run's folder stands for its newest checkpoint, whose path the new run records. */
static int resolve_run(struct job_config *c, const struct task_env *e, struct cairn_error *err)
{
    const char *path = c->model.path;
    struct checkpoint_state state = { 0 };
    char *newest;
    if (access(arena_printf(e->arena, "%s/checkpoints", path), F_OK))
        return 0;
    if (checkpoints_newest(path, c->arena, &newest, &state, task_say_skipped, (void *)e, err))
        return -1;
    if (access(arena_printf(e->arena, "%s/" CHECKPOINT_MODEL, newest), F_OK)) {
        cairn_fail(err, CAIRN_EUSAGE, "model.path: %s is a LoRA run, which has no weights of the whole model",
                   path);
        return cairn_hint(err, "cairn tensor merge adds its LoRA to the model that it was trained on");
    }
    c->model.path = newest;
    return 0;
}

/* Shape keys that the configuration does not set come from the files in model.path. */
static int resolve(struct job_config *c, const struct task_env *e, struct cairn_error *err)
{
    struct gpt_model_keys *m = &((struct gpt_keys *)c->own)->model;
    struct gpt_shape s = { .heads = config_is_set(c, "model.heads") ? (size_t)m->heads : 0 };
    if (!c->model.path[0])
        return config_fill(c, err);
    if (resolve_run(c, e, err) || gpt_file_shape(c->model.path, &s, err))
        return -1;
    const struct {
        const char *key;
        int64_t *at;
        size_t value;
    } sizes[] = {
        { "model.layers", &m->layers, s.layers },
        { "model.heads", &m->heads, s.heads },
        { "model.kv_heads", &m->kv_heads, s.kv_heads },
        { "model.width", &m->width, s.width },
        { "model.ffn", &m->ffn, s.ffn },
        { "model.context", &m->context, s.context },
        { "model.vocab", &m->vocab, s.vocab },
    };
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (!config_is_set(c, sizes[i].key))
            *sizes[i].at = (int64_t)sizes[i].value;
    m->norm = s.norm == NN_NORM_RMS ? GPT_NORM_RMS : GPT_NORM_LAYER;
    m->position = s.rope ? GPT_POSITION_ROPE : GPT_POSITION_LEARNED;
    m->mlp = s.swiglu ? GPT_MLP_SWIGLU : GPT_MLP_GELU;
    m->bias = s.bias;
    m->tied = s.tied;
    m->norm_eps = (double)s.norm_epsilon;
    if (s.rope)
        m->rope_theta = (double)s.rope_theta;
    return config_fill(c, err);
}

static struct gpt_shape shape_of(const struct gpt_model_keys *m)
{
    return (struct gpt_shape){
        .layers = (size_t)m->layers,
        .heads = (size_t)m->heads,
        .kv_heads = (size_t)m->kv_heads,
        .width = (size_t)m->width,
        .ffn = (size_t)m->ffn,
        .context = (size_t)m->context,
        .vocab = (size_t)m->vocab,
        .norm = m->norm == GPT_NORM_RMS ? NN_NORM_RMS : NN_NORM_LAYER,
        .rope = m->position == GPT_POSITION_ROPE,
        .swiglu = m->mlp == GPT_MLP_SWIGLU,
        .bias = m->bias,
        .tied = m->tied,
        .norm_epsilon = (float)m->norm_eps,
        .rope_theta = (float)m->rope_theta,
        .dropout = (float)m->dropout,
    };
}

/* ---- data ---- */

static struct data_options data_options(const struct task_env *e)
{
    const struct gpt_keys *k = gpt_keys(e->config);
    return (struct data_options){
        .paths = k->data.path.item,
        .n_paths = k->data.path.n,
        .text_key = k->data.text_key,
        .val_path = k->data.val_path,
        .val_split = k->data.val_split,
        .seq = (size_t)k->train.seq,
        .batch = (size_t)(e->config->train.batch * e->config->train.accumulate),
        .seed = (uint64_t)e->config->train.seed,
        .talk = e->talk,
        .stop = e->stop,
    };
}

static const char *saved_tokenizer(const struct task_env *e)
{
    return arena_printf(e->arena, "%s/tokenizer.json", e->dir);
}

static int open_tokenizer(struct gpt_task *t, struct cairn_error *err)
{
    const struct task_env *e = &t->task.env;
    const struct gpt_data *d = &gpt_keys(e->config)->data;
    const char *kind = d->tokenizer, *saved = saved_tokenizer(e);
    struct data_options o = data_options(e);
    if (!strcmp(kind, "bytes"))
        return tokenizer_new_bytes(&t->tokenizer, err);
    if (e->dir[0] && !access(saved, F_OK))
        return tokenizer_open(saved, &t->tokenizer, err);
    if (strcmp(kind, "bpe") != 0 && access(kind, R_OK)) {
        cairn_fail_errno(err, "data.tokenizer: %s", kind);
        return cairn_hint(err, "it must be bytes, bpe or the path of a tokenizer.json");
    }
    if (strcmp(kind, "bpe") != 0)
        return tokenizer_open(kind, &t->tokenizer, err);
    message_say(&e->sink, "training a BPE tokenizer of %lld tokens", (long long)d->vocab);
    return data_train_tokenizer(&o, (uint32_t)d->vocab, &t->tokenizer, err);
}

/* The error names the key: the user may not have typed the path. */
static int check_files(const struct data_options *d, struct cairn_error *err)
{
    for (size_t i = 0; i < d->n_paths; i++)
        if (access(d->paths[i], R_OK))
            return cairn_fail_errno(err, "data.path: %s", d->paths[i]),
                   cairn_hint(
                       err,
                       "data.path names the training data: text files, or folders of them (--set data.path=FILE)");
    if (d->val_path && d->val_path[0] && access(d->val_path, R_OK))
        return cairn_fail_errno(err, "data.val_path: %s", d->val_path);
    return 0;
}

/* A plan needs no tokens, and a tokenizer only if the vocabulary follows from it. */
static int open_data(struct gpt_task *t, struct cairn_error *err)
{
    const struct task_env *e = &t->task.env;
    struct gpt_keys *k = e->config->own;
    struct data_options d = data_options(e);
    if (check_files(&d, err))
        return -1;
    if (e->only_plan && k->model.vocab && !strcmp(k->data.tokenizer, "bpe"))
        return 0;
    if (open_tokenizer(t, err) || (!e->only_plan && data_open(&d, t->tokenizer, &t->data, err)))
        return -1;
    if (!k->model.vocab)
        k->model.vocab = tokenizer_vocab(t->tokenizer);
    if (k->model.vocab < (int64_t)tokenizer_vocab(t->tokenizer))
        return cairn_fail(err, CAIRN_EUSAGE, "model.vocab is %lld, but the tokenizer has %u tokens",
                          (long long)k->model.vocab, tokenizer_vocab(t->tokenizer));
    return 0;
}

/* Saves a copy of the tokenizer in the run's folder, so that it cannot change later. */
static int keep(const struct task *task, struct cairn_error *err)
{
    const struct gpt_task *t = gpt_task_of(task);
    if (!strcmp(gpt_keys(config_of(t))->data.tokenizer, "bytes"))
        return 0;
    return tokenizer_save(t->tokenizer, saved_tokenizer(&task->env), err);
}

/* ---- opening ---- */

static void close_task(struct task *task)
{
    struct gpt_task *t = gpt_task_of(task);
    if (!t)
        return;
    sampler_close(t->sampler);
    gpt_close(t->gpt);
    data_close(t->data);
    tokenizer_free(t->tokenizer);
    free(t->ids);
    free(t->targets);
    free(t);
}

static int new_task(const struct task_env *e, struct gpt_task **out, struct cairn_error *err)
{
    const struct gpt_keys *k = gpt_keys(e->config);
    struct gpt_task *t = calloc(1, sizeof(*t));
    if (!t)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    t->task = (struct task){
        .ops = &task_gpt,
        .env = *e,
        .step_units = (double)(e->config->train.batch * e->config->train.accumulate * k->train.seq),
        .speed = TASK_TOKENS_PER_S,
        .extent = (size_t)k->train.seq,
        .hidden_size = (size_t)k->model.width,
    };
    *out = t;
    return 0;
}

static int open_task(const struct task_env *e, struct task **out, struct cairn_error *err)
{
    struct gpt_task *t;
    if (new_task(e, &t, err))
        return -1;
    if (open_data(t, err)) {
        close_task(&t->task);
        return -1;
    }
    *out = &t->task;
    return 0;
}

/* The user's tokenizer, the run's, or the one beside the model's files.  NULL: the tokens are bytes. */
static int find_tokenizer(const struct task_env *e, const struct task_saved *s, const char **out,
                          struct cairn_error *err)
{
    enum { BYTES = 256 };
    const struct gpt_keys *k = gpt_keys(e->config);
    const char *beside = arena_printf(e->arena, "%s/tokenizer.json", s->dir);
    *out = s->tokenizer;
    if (s->tokenizer || (s->is_run && !strcmp(k->data.tokenizer, "bytes")))
        return 0;
    if (s->is_run || !access(beside, R_OK)) {
        *out = beside;
        return 0;
    }
    if (k->model.vocab == BYTES)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s has no tokenizer.json, and its %lld tokens are not bytes",
               e->config->model.path, (long long)k->model.vocab);
    return cairn_hint(err, "--tokenizer FILE names one");
}

static int open_saved(const struct task_env *e, const struct task_saved *s, struct task **out,
                      struct cairn_error *err)
{
    const struct gpt_keys *k = gpt_keys(e->config);
    const char *path;
    struct gpt_task *t;
    if (find_tokenizer(e, s, &path, err) || new_task(e, &t, err))
        return -1;
    int r = path ? tokenizer_open(path, &t->tokenizer, err) : tokenizer_new_bytes(&t->tokenizer, err);
    if (!r && tokenizer_vocab(t->tokenizer) > k->model.vocab)
        r = cairn_fail(err, CAIRN_EUSAGE, "the tokenizer has %u tokens, but the model only %lld",
                       tokenizer_vocab(t->tokenizer), (long long)k->model.vocab);
    if (r) {
        close_task(&t->task);
        return -1;
    }
    *out = &t->task;
    return 0;
}

static enum gpt_quantize quantize_of(const struct config_model *m)
{
    switch (m->quantize) {
    case CONFIG_QUANTIZE_INT8:
        return GPT_QUANTIZE_INT8;
    case CONFIG_QUANTIZE_FP8:
        return GPT_QUANTIZE_FP8;
    case CONFIG_QUANTIZE_NONE:
        break;
    }
    return GPT_QUANTIZE_NONE;
}

static int new_model(struct task *task, struct cairn_error *err)
{
    struct gpt_task *t = gpt_task_of(task);
    const struct job_config *c = config_of(t);
    const struct gpt_keys *k = gpt_keys(c);
    struct gpt_shape shape = shape_of(&k->model);
    struct lora_options lora = {
        .rank = (size_t)c->lora.rank,
        .alpha = (float)c->lora.alpha,
        .dropout = (float)c->lora.dropout,
        .targets = c->lora.targets.item,
        .n_targets = c->lora.targets.n,
    };
    struct gpt_options options = { .quantize = quantize_of(&c->model), .lora = c->lora.rank ? &lora : NULL };
    if (gpt_new(task->env.nn, &shape, &options, &t->gpt, err))
        return -1;
    t->gpt->label_smoothing = (float)k->train.label_smoothing;
    task->model = &t->gpt->model;
    return 0;
}

static int load_base(struct gpt_task *t, struct cairn_error *err)
{
    struct param_report report = { 0 };
    CLEANUP(str_release) struct str said = { 0 };
    const char *path = config_of(t)->model.path;
    int r = gpt_file_load(t->gpt, path, &report, err);
    param_report_say(&report, &said);
    if (!r)
        message_say(&t->task.env.sink, "%s: %s", path, said.s);
    param_report_release(&report);
    return r;
}

static int fill_model(struct task *task, struct cairn_error *err)
{
    struct gpt_task *t = gpt_task_of(task);
    const struct job_config *c = config_of(t);
    uint64_t seed = (uint64_t)c->train.seed;
    if (c->lora.rank && gpt_init_lora(t->gpt, seed, err))
        return -1;
    return c->model.path[0] ? load_base(t, err)
                            : gpt_init(t->gpt, (float)gpt_keys(c)->model.init_std, seed, err);
}

/* ---- batches ---- */

static int reserve(struct gpt_task *t, size_t samples, struct cairn_error *err)
{
    size_t n = samples * t->task.extent;
    if (n <= t->capacity)
        return 0;
    free(t->ids);
    free(t->targets);
    t->ids = malloc(n * sizeof(*t->ids));
    t->targets = malloc(n * sizeof(*t->targets));
    t->capacity = t->ids && t->targets ? n : 0;
    return t->capacity ? 0 : cairn_fail(err, CAIRN_ENOMEM, "no memory for a batch of %zu tokens", n);
}

static int put(struct task *task, struct work *w, size_t slot, uint64_t step, size_t micro, size_t n,
               struct cairn_error *err)
{
    struct gpt_task *t = gpt_task_of(task);
    if (reserve(t, n, err))
        return -1;
    task->data_failed = data_batch(t->data, step, micro, n, t->ids, t->targets, err);
    return task->data_failed ? -1 : gpt_put((struct gpt_work *)w, slot, t->ids, t->targets, err);
}

static uint64_t val_samples(const struct task *task)
{
    struct data_info d;
    data_info_get(gpt_task_of(task)->data, &d);
    return d.val_windows;
}

static int put_val(struct task *task, struct work *w, uint64_t index, size_t n, struct cairn_error *err)
{
    struct gpt_task *t = gpt_task_of(task);
    if (reserve(t, n, err))
        return -1;
    task->data_failed = data_val_batch(t->data, index, n, t->ids, t->targets, err);
    return task->data_failed ? -1 : gpt_put((struct gpt_work *)w, 0, t->ids, t->targets, err);
}

static void add_data(const struct task *task, struct hash *h)
{
    struct data_info d;
    data_info_get(gpt_task_of(task)->data, &d);
    hash_add_u64(h, d.hash);
}

/* ---- samples ---- */

static struct work_bytes sample_bytes(const struct task *task)
{
    const struct gpt *m = gpt_task_of(task)->gpt;
    struct gpt_work_options o = sampler_work_options(m, m->shape.context);
    struct work_options w = { .samples = o.samples, .extent = o.tokens };
    return task->model->ops->work_bytes(task->model, &w);
}

int task_gpt_sampler(struct task *task, struct sampler **out, struct cairn_error *err)
{
    struct gpt_task *t = gpt_task_of(task);
    if (task->ops != &task_gpt)
        return cairn_fail(err, CAIRN_EUSAGE, "a model of the kind %s does not write text",
                          task->ops->schema->kind);
    if (!t->sampler && sampler_open(t->gpt, t->tokenizer, t->gpt->shape.context, &t->sampler, err))
        return -1;
    *out = t->sampler;
    return 0;
}

static int sample(struct task *task, const char *dir, uint64_t step, struct str *text,
                  struct cairn_error *err)
{
    const struct job_config *c = task->env.config;
    const struct gpt_keys *k = gpt_keys(c);
    struct sampler *sampler;
    if (task_gpt_sampler(task, &sampler, err))
        return -1;
    for (size_t i = 0; i < k->sample.prompts.n; i++) {
        struct sample_options o = {
            .tokens = (size_t)k->sample.tokens,
            .temperature = k->sample.temperature,
            .top_k = (size_t)k->sample.top_k,
            .seed = sample_seed((uint64_t)c->train.seed, i),
        };
        if (sampler_run(sampler, k->sample.prompts.item[i], &o, text, err))
            return -1;
        str_add(text, "\n");
    }
    char path[4096];
    snprintf(path, sizeof(path), "%s/step-%" PRIu64 ".txt", dir, step);
    return file_write(path, text->s, strlen(text->s), err);
}

static void sample_close(struct task *task)
{
    struct gpt_task *t = gpt_task_of(task);
    sampler_close(t->sampler);
    t->sampler = NULL;
}

static bool sample_is_open(const struct task *task)
{
    return gpt_task_of(task)->sampler != NULL;
}

/* ---- output ---- */

static const char *label(const struct task *task, struct arena *a)
{
    const struct gpt_shape *s = &gpt_task_of(task)->gpt->shape;
    return arena_printf(a, "gpt %zux%zu", s->layers, s->width);
}

static void summary(const struct task *task)
{
    const struct gpt_task *t = gpt_task_of(task);
    const struct gpt_shape *s = &t->gpt->shape;
    const struct lora *l = &t->gpt->lora;
    struct data_info d;
    message_say(
        &task->env.sink,
        "model     %s parameters: %zu layer%s of %zu heads, hidden size %zu, context %zu, vocabulary %zu",
        task_count_text(task->env.arena, params_count(&t->gpt->params)), s->layers, s->layers == 1 ? "" : "s",
        s->heads, s->width, s->context, s->vocab);
    if (l->rank)
        message_say(&task->env.sink, "lora      rank %zu, %s parameters in %zu matrices", l->rank,
                    task_count_text(task->env.arena, params_count(&l->params)), l->params.n / 2);
    if (!t->data) {
        message_say(&task->env.sink, "data      not read; %zu tokens per sequence", task->extent);
        return;
    }
    data_info_get(t->data, &d);
    message_say(&task->env.sink,
                "data      %s training tokens, %s validation tokens; %zu tokens per sequence",
                task_count_text(task->env.arena, d.tokens), task_count_text(task->env.arena, d.val_tokens),
                task->extent);
}

const struct task_ops task_gpt = {
    .schema = &gpt_schema,
    .resolve = resolve,
    .open = open_task,
    .open_saved = open_saved,
    .close = close_task,
    .new_model = new_model,
    .fill_model = fill_model,
    .put = put,
    .val_samples = val_samples,
    .put_val = put_val,
    .add_data = add_data,
    .sample_bytes = sample_bytes,
    .sample = sample,
    .sample_close = sample_close,
    .sample_is_open = sample_is_open,
    .keep = keep,
    .label = label,
    .summary = summary,
    .try_command = "cairn sample",
    .shrink_hint = "a shorter train.seq, a smaller model, model.quantize with LoRA, or "
                   "train.optimizer: adafactor",
    .sample_shrink_hint = "a smaller model, or --device cpu",
};
