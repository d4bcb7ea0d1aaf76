/* SPDX-License-Identifier: Apache-2.0
 * Keys that are right alone and wrong together. */
#include "base/parse.h"
#include "train/config.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Blames the first of the two that somebody wrote. */
static int clash(const struct job_config *c, const char *key, const char *other, struct cairn_error *err,
                 const char *fmt, ...) PRINTF_LIKE(5, 6);
static int clash(const struct job_config *c, const char *key, const char *other, struct cairn_error *err,
                 const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    const char *place = config_place(c, key);
    if (!place)
        place = config_place(c, other);
    if (!place)
        place = c->file;
    return cairn_fail(err, CAIRN_EUSAGE, "%s%s%s", place ? place : "", place ? ": " : "", text);
}

static int check_data(const struct job_config *c, struct cairn_error *err)
{
    const struct config_data *d = &c->data;
    if (!d->path.n)
        return clash(c, "data.path", "data.path", err, "data.path is missing: what the model learns from");
    for (size_t i = 0; i < d->path.n; i++)
        if (!*d->path.item[i])
            return clash(c, "data.path", "data.path", err,
                         "data.path is \"\"; it must name a file or folder");
    if (!*d->tokenizer)
        return clash(c, "data.tokenizer", "data.tokenizer", err,
                     "data.tokenizer is \"\"; it must be bytes, bpe or a file");
    return 0;
}

static int check_vocab(const struct job_config *c, struct cairn_error *err)
{
    bool bytes = !strcmp(c->data.tokenizer, "bytes"), bpe = !strcmp(c->data.tokenizer, "bpe");
    int64_t least = bytes ? 256 : bpe ? c->data.vocab : 0;
    if (c->model.vocab && c->model.vocab < least)
        return clash(c, "model.vocab", "data.vocab", err,
                     "model.vocab is %" PRId64 ", but the tokenizer %s has %" PRId64 " tokens",
                     c->model.vocab, c->data.tokenizer, least);
    return 0;
}

static bool is_device(const char *name)
{
    uint64_t index;
    if (!strcmp(name, "auto") || !strcmp(name, "cpu"))
        return true;
    const char *colon = strchr(name, ':');
    return (str_starts(name, "hip:") || str_starts(name, "cuda:")) && cairn_parse_u64(colon + 1, &index) &&
           index < 1000;
}

static int check_train(const struct job_config *c, struct cairn_error *err)
{
    const struct config_train *t = &c->train;
    if (config_is_set(c, "train.warmup") && t->warmup > t->steps)
        return clash(c, "train.warmup", "train.steps", err,
                     "train.warmup is %" PRId64 ", more than train.steps, %" PRId64, t->warmup, t->steps);
    if (t->master == CONFIG_MASTER_STOCHASTIC && t->dtype == CONFIG_DTYPE_F32)
        return clash(c, "train.master", "train.dtype", err,
                     "train.master is stochastic, which is for 16-bit weights; train.dtype is f32");
    return 0;
}

static int check_device(const struct job_config *c, struct cairn_error *err)
{
    if (is_device(c->train.device))
        return 0;
    CLEANUP(str_release) struct str shown = { 0 };
    str_add_clean(&shown, c->train.device, strlen(c->train.device));
    return clash(c, "train.device", "train.device", err,
                 "train.device is \"%.60s\"; it must be auto, cpu, hip:N or cuda:N", shown.s ? shown.s : "");
}

static int check_extras(const struct job_config *c, struct cairn_error *err)
{
    if (c->model.quantize != CONFIG_QUANTIZE_NONE && !c->lora.rank)
        return clash(c, "model.quantize", "lora.rank", err,
                     "model.quantize is %s, but quantized weights cannot be trained; set lora.rank, or none",
                     c->model.quantize == CONFIG_QUANTIZE_INT8 ? "int8" : "fp8");
    if (c->train.patience && !c->eval.every)
        return clash(c, "train.patience", "eval.every", err,
                     "train.patience is %" PRId64 ", but eval.every is 0: nothing is evaluated",
                     c->train.patience);
    if (c->train.patience && !*c->data.val_path && c->data.val_split <= 0)
        return clash(c, "train.patience", "data.val_split", err,
                     "train.patience is %" PRId64 ", but there is neither data.val_path nor data.val_split",
                     c->train.patience);
    if (c->sample.every && !c->sample.prompts.n)
        return clash(c, "sample.prompts", "sample.every", err,
                     "sample.prompts has none, but sample.every is %" PRId64, c->sample.every);
    return 0;
}

int config_check(const struct job_config *c, struct cairn_error *err)
{
    bool bad = check_data(c, err) || check_vocab(c, err) || check_train(c, err) || check_device(c, err) ||
               check_extras(c, err);
    return bad ? -1 : 0;
}

static int check_shape(const struct job_config *c, struct cairn_error *err)
{
    const struct config_model *m = &c->model;
    if (m->width % m->heads)
        return clash(c, "model.heads", "model.width", err,
                     "model.heads is %" PRId64 ", which does not divide model.width, %" PRId64, m->heads,
                     m->width);
    if (m->heads % m->kv_heads)
        return clash(c, "model.kv_heads", "model.heads", err,
                     "model.kv_heads is %" PRId64 ", which does not divide model.heads, %" PRId64,
                     m->kv_heads, m->heads);
    if (m->position == CONFIG_POSITION_ROPE && m->width / m->heads % 2)
        return clash(c, "model.position", "model.heads", err,
                     "model.position is rope, which turns pairs; model.width / model.heads is %" PRId64
                     ", which is odd",
                     m->width / m->heads);
    if (c->train.seq > m->context)
        return clash(c, "train.seq", "model.context", err,
                     "train.seq is %" PRId64 ", more than model.context, %" PRId64, c->train.seq, m->context);
    return 0;
}

static int64_t inner_width(const struct config_model *m)
{
    return m->mlp == CONFIG_MLP_SWIGLU ? (m->width * 8 / 3 + 63) / 64 * 64 : 4 * m->width;
}

int config_fill(struct job_config *c, struct cairn_error *err)
{
    struct config_model *m = &c->model;
    struct config_train *t = &c->train;
    if (!m->kv_heads)
        m->kv_heads = m->heads;
    if (!m->ffn)
        m->ffn = inner_width(m);
    if (!t->seq)
        t->seq = m->context;
    if (c->lora.alpha <= 0)
        c->lora.alpha = (double)c->lora.rank;
    double lr = optim_methods[t->optimizer]->default_lr;
    if (!config_is_set(c, "train.lr") && lr > 0)
        t->lr = lr;
    if (!config_is_set(c, "train.warmup") && t->warmup > t->steps / 10)
        t->warmup = t->steps / 10;
    return check_shape(c, err);
}
