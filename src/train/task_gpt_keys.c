/* SPDX-License-Identifier: Apache-2.0
 * The configuration of a GPT that learns from text: its keys, what they default to, what contradicts what. */
#include "base/int.h"
#include "train/config_rows.h"
#include "train/task_gpt.h"
#include <inttypes.h>
#include <string.h>

/* clang-format off */
static const char *const norms[] = { [GPT_NORM_LAYER] = "layer", [GPT_NORM_RMS] = "rms", NULL };
static const char *const positions[] = { [GPT_POSITION_LEARNED] = "learned", [GPT_POSITION_ROPE] = "rope", NULL };
static const char *const mlps[] = { [GPT_MLP_GELU] = "gelu", [GPT_MLP_SWIGLU] = "swiglu", NULL };

#define KEY(...) CONFIG_KEY(struct gpt_keys, __VA_ARGS__)

static const struct config_key keys[] = {
    KEY(model.layers, "6", "blocks, one behind the other", FROM(1, 1000)),
    KEY(model.heads, "6", "heads of attention; divides width", FROM(1, 1024)),
    KEY(model.kv_heads, "0", "heads of keys and values; divides heads; 0: as many as heads", FROM(0, 1024)),
    KEY(model.width, "384", "numbers that stand for a token between blocks", FROM(1, 65536)),
    KEY(model.ffn, "0", "inner width of the MLP; 0: 4 x width, for swiglu 8/3 x width, up to the next multiple of 64",
        FROM(0, 1048576)),
    KEY(model.context, "256", "the longest text it can look at", UNIT("tokens"), FROM(1, 1048576)),
    KEY(model.vocab, "0", "tokens it knows; 0: those of the tokenizer", UNIT("tokens"), FROM(0, 16777216)),
    KEY(model.norm, "layer", "layer norm, or RMS norm", .words = norms),
    KEY(model.norm_eps, "1e-5", "what a norm adds to the variance", ABOVE_0(1)),
    KEY(model.position, "learned", "a learned vector for each place, or rotation of queries and keys", .words = positions),
    KEY(model.rope_theta, "10000", "base of the rotation's frequencies", ABOVE_0(1e12)),
    KEY(model.mlp, "gelu", "what the MLP of a block does", .words = mlps),
    KEY(model.bias, "true", "linears and layer norms add a bias"),
    KEY(model.tied, "true", "the matrix of the output is that of the token embedding"),
    KEY(model.dropout, "0", "share of the activations that is dropped in training", UNIT("share"), SHARE),
    KEY(model.init_std, "0.02", "standard deviation of new weights", ABOVE_0(1)),

    KEY(data.path, "[]", "text file, folder of them, .jsonl, or .bin of tokens; one or several; must be given"),
    KEY(data.text_key, "text", "the key of the text in a line of .jsonl"),
    KEY(data.tokenizer, "bytes", "bytes; bpe, which is trained on the data; or a tokenizer.json"),
    KEY(data.vocab, "4096", "tokens of a bpe that is trained", UNIT("tokens"), FROM(256, 1048576)),
    KEY(data.val_path, "", "text for the evaluation; empty: val_split of the data"),
    KEY(data.val_split, "0.05", "share of the data that is kept for the evaluation; not used with val_path", UNIT("share"),
        SHARE),

    KEY(train.seq, "0", "length of a sequence; 0: the model's context", UNIT("tokens"), FROM(0, 1048576)),
    KEY(train.label_smoothing, "0", "share of the target that is spread over all tokens", UNIT("share"), SHARE),

    KEY(sample.tokens, "200", "length of a sample", UNIT("tokens"), FROM(1, 1000000)),
    KEY(sample.temperature, "0.8", "below 1 likely tokens become likelier; 0: always the likeliest", FROM(0, 100)),
    KEY(sample.top_k, "50", "choose among so many likeliest tokens; 0: among all", UNIT("tokens"), FROM(0, 16777216)),
    KEY(sample.prompts, "[\"\\n\"]", "what the samples begin with, one sample each"),
};
/* clang-format on */

const struct gpt_keys *gpt_keys(const struct job_config *c)
{
    return c->own;
}

/* ---- checks ---- */

static int check_data(const struct job_config *c, struct cairn_error *err)
{
    const struct gpt_data *d = &gpt_keys(c)->data;
    if (!d->path.n)
        return config_clash(c, "data.path", "data.path", err,
                            "data.path is missing: what the model learns from");
    for (size_t i = 0; i < d->path.n; i++)
        if (!*d->path.item[i])
            return config_clash(c, "data.path", "data.path", err,
                                "data.path is \"\"; it must name a file or folder");
    if (!*d->tokenizer)
        return config_clash(c, "data.tokenizer", "data.tokenizer", err,
                            "data.tokenizer is \"\"; it must be bytes, bpe or a file");
    return 0;
}

static int check_vocab(const struct job_config *c, struct cairn_error *err)
{
    const struct gpt_keys *k = gpt_keys(c);
    bool bytes = !strcmp(k->data.tokenizer, "bytes"), bpe = !strcmp(k->data.tokenizer, "bpe");
    int64_t least = bytes ? 256 : bpe ? k->data.vocab : 0;
    if (k->model.vocab && k->model.vocab < least)
        return config_clash(c, "model.vocab", "data.vocab", err,
                            "model.vocab is %" PRId64 ", but the tokenizer %s has %" PRId64 " tokens",
                            k->model.vocab, k->data.tokenizer, least);
    return 0;
}

static int check_rest(const struct job_config *c, struct cairn_error *err)
{
    const struct gpt_keys *k = gpt_keys(c);
    if (c->train.patience && !*k->data.val_path && k->data.val_split <= 0)
        return config_clash(c, "train.patience", "data.val_split", err,
                            "train.patience is %" PRId64
                            ", but there is neither data.val_path nor data.val_split",
                            c->train.patience);
    if (c->sample.every && !k->sample.prompts.n)
        return config_clash(c, "sample.prompts", "sample.every", err,
                            "sample.prompts has none, but sample.every is %" PRId64, c->sample.every);
    return 0;
}

static int check(const struct job_config *c, struct cairn_error *err)
{
    return check_data(c, err) || check_vocab(c, err) || check_rest(c, err) ? -1 : 0;
}

static int check_shape(const struct job_config *c, struct cairn_error *err)
{
    const struct gpt_model_keys *m = &gpt_keys(c)->model;
    if (m->width % m->heads)
        return config_clash(c, "model.heads", "model.width", err,
                            "model.heads is %" PRId64 ", which does not divide model.width, %" PRId64,
                            m->heads, m->width);
    if (m->heads % m->kv_heads)
        return config_clash(c, "model.kv_heads", "model.heads", err,
                            "model.kv_heads is %" PRId64 ", which does not divide model.heads, %" PRId64,
                            m->kv_heads, m->heads);
    if (m->position == GPT_POSITION_ROPE && m->width / m->heads % 2)
        return config_clash(c, "model.position", "model.heads", err,
                            "model.position is rope, which turns pairs; model.width / model.heads is %" PRId64
                            ", which is odd",
                            m->width / m->heads);
    if (gpt_keys(c)->train.seq > m->context)
        return config_clash(c, "train.seq", "model.context", err,
                            "train.seq is %" PRId64 ", more than model.context, %" PRId64,
                            gpt_keys(c)->train.seq, m->context);
    return 0;
}

static int64_t inner_width(const struct gpt_model_keys *m)
{
    return m->mlp == GPT_MLP_SWIGLU ? (m->width * 8 / 3 + 63) / 64 * 64 : 4 * m->width;
}

static int fill(struct job_config *c, struct cairn_error *err)
{
    struct gpt_keys *k = c->own;
    if (!k->model.kv_heads)
        k->model.kv_heads = k->model.heads;
    if (!k->model.ffn)
        k->model.ffn = inner_width(&k->model);
    if (!k->train.seq)
        k->train.seq = k->model.context;
    return check_shape(c, err);
}

const struct config_schema gpt_schema = {
    .kind = "gpt",
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .bytes = sizeof(struct gpt_keys),
    .check = check,
    .fill = fill,
};
