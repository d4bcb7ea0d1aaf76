/* SPDX-License-Identifier: Apache-2.0
 * Configuration of a GPT trained on text: keys, defaults and checks. */
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
    KEY(model.layers, "6", "number of transformer blocks", FROM(1, 1000)),
    KEY(model.heads, "6", "attention heads; must divide width", FROM(1, 1024)),
    KEY(model.kv_heads, "0", "key/value heads (GQA); must divide heads; 0: same as heads", FROM(0, 1024)),
    KEY(model.width, "384", "hidden size (d_model)", FROM(1, 65536)),
    KEY(model.ffn, "0", "hidden size of the MLP; 0: 4 x width, for swiglu 8/3 x width rounded up to a multiple of 64",
        FROM(0, 1048576)),
    KEY(model.context, "256", "context length: the longest sequence the model can process", UNIT("tokens"), FROM(1, 1048576)),
    KEY(model.vocab, "0", "vocabulary size; 0: that of the tokenizer", UNIT("tokens"), FROM(0, 16777216)),
    KEY(model.norm, "layer", "LayerNorm or RMSNorm", .words = norms),
    KEY(model.norm_eps, "1e-5", "epsilon added to the variance in a norm", ABOVE_0(1)),
    KEY(model.position, "learned", "position encoding: learned embeddings, or rotary (RoPE)", .words = positions),
    KEY(model.rope_theta, "10000", "base of the RoPE frequencies", ABOVE_0(1e12)),
    KEY(model.mlp, "gelu", "MLP of a block: GELU or SwiGLU", .words = mlps),
    KEY(model.bias, "true", "linear layers and LayerNorms have a bias"),
    KEY(model.tied, "true", "share the output matrix with the token embedding (tied weights)"),
    KEY(model.dropout, "0", "dropout during training", UNIT("share"), SHARE),
    KEY(model.init_std, "0.02", "standard deviation of new weights", ABOVE_0(1)),

    KEY(data.path, "[]", "required: one or more text files, folders of them, .jsonl files or .bin files of tokens", IS_PATH),
    KEY(data.text_key, "text", "key that holds the text in each line of a .jsonl file"),
    KEY(data.tokenizer, "bytes", "bytes, bpe (trained on the data) or the path of a tokenizer.json", MAY_BE_PATH),
    KEY(data.vocab, "4096", "vocabulary size of a BPE tokenizer trained on the data", UNIT("tokens"), FROM(256, 1048576)),
    KEY(data.val_path, "", "validation data; empty: a share of the data, see val_split", IS_PATH),
    KEY(data.val_split, "0.05", "share of the data held out for validation; not used with val_path", UNIT("share"),
        SHARE),

    KEY(train.seq, "0", "sequence length; 0: model.context", UNIT("tokens"), FROM(0, 1048576)),
    KEY(train.label_smoothing, "0", "label smoothing: probability spread over all tokens", UNIT("share"), SHARE),

    KEY(sample.tokens, "200", "length of a sample", UNIT("tokens"), FROM(1, 1000000)),
    KEY(sample.temperature, "0.8", "sampling temperature; below 1 favours likely tokens; 0: greedy", FROM(0, 100)),
    KEY(sample.top_k, "50", "sample from the most likely tokens only; 0: from all tokens", UNIT("tokens"), FROM(0, 16777216)),
    KEY(sample.prompts, "[\"\\n\"]", "prompts, one sample each"),
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
                            "data.path is missing: it names the training data");
    for (size_t i = 0; i < d->path.n; i++)
        if (!*d->path.item[i])
            return config_clash(c, "data.path", "data.path", err,
                                "data.path is \"\"; it must name a file or folder");
    if (!*d->tokenizer)
        return config_clash(c, "data.tokenizer", "data.tokenizer", err,
                            "data.tokenizer is \"\"; it must be bytes, bpe or the path of a tokenizer.json");
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
                            ", but there is no validation data: set data.val_path or data.val_split",
                            c->train.patience);
    if (c->sample.every && !k->sample.prompts.n)
        return config_clash(c, "sample.prompts", "sample.every", err,
                            "sample.prompts is empty, but sample.every is %" PRId64, c->sample.every);
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
        return config_clash(
            c, "model.position", "model.heads", err,
            "model.position is rope, which needs an even head size; model.width / model.heads is %" PRId64,
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
