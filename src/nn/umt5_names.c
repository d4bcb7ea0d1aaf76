/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/umt5_file.h"
#include <fnmatch.h>
#include <string.h>

/* ---- names ---- */

static const struct {
    const char *official, *hf; /* after "blocks.N." and "encoder.block.N.layer." */
} names[UMT5_LAYER_TENSORS] = {
    [UMT5_Q] = { "attn.q.weight", "0.SelfAttention.q.weight" },
    [UMT5_K] = { "attn.k.weight", "0.SelfAttention.k.weight" },
    [UMT5_V] = { "attn.v.weight", "0.SelfAttention.v.weight" },
    [UMT5_O] = { "attn.o.weight", "0.SelfAttention.o.weight" },
    [UMT5_GATE] = { "ffn.gate.0.weight", "1.DenseReluDense.wi_0.weight" },
    [UMT5_UP] = { "ffn.fc1.weight", "1.DenseReluDense.wi_1.weight" },
    [UMT5_DOWN] = { "ffn.fc2.weight", "1.DenseReluDense.wo.weight" },
    [UMT5_NORM1] = { "norm1.weight", "0.layer_norm.weight" },
    [UMT5_NORM2] = { "norm2.weight", "1.layer_norm.weight" },
    [UMT5_BIAS] = { "pos_embedding.embedding.weight", "0.SelfAttention.relative_attention_bias.weight" },
};

const char *umt5_name(const struct umt5_names *n, struct arena *a, size_t layer, enum umt5_tensor t)
{
    return n->official ? arena_printf(a, "%sblocks.%zu.%s", n->prefix, layer, names[t].official)
                       : arena_printf(a, "%sencoder.block.%zu.layer.%s", n->prefix, layer, names[t].hf);
}

const char *umt5_name_norm(const struct umt5_names *n, struct arena *a)
{
    return arena_printf(a, "%s%s", n->prefix,
                        n->official ? "norm.weight" : "encoder.final_layer_norm.weight");
}

const char *umt5_name_embedding(const struct umt5_names *n, struct arena *a, const struct tensor_source *s)
{
    const char *shared = arena_printf(a, "%sshared.weight", n->prefix);
    const char *own = arena_printf(a, "%sencoder.embed_tokens.weight", n->prefix);
    if (n->official)
        return arena_printf(a, "%stoken_embedding.weight", n->prefix);
    return !source_find(s, shared) && source_find(s, own) ? own : shared;
}

/* ---- which names a file has ---- */

/* A tensor whose name ends so tells the names, and a second one must be there. */
static const struct anchor {
    const char *end, *with;
    bool official;
} anchors[] = {
    { "encoder.final_layer_norm.weight", "encoder.block.0.layer.0.SelfAttention.q.weight", false },
    { "encoder.block.0.layer.0.SelfAttention.q.weight", "encoder.block.0.layer.1.DenseReluDense.wi_0.weight",
      false },
    { "blocks.0.pos_embedding.embedding.weight", "blocks.0.attn.q.weight", true },
    { "token_embedding.weight", "blocks.0.ffn.gate.0.weight", true },
};

/* What stands before `end`, a whole part of the name; NULL: it does not end so. */
static const char *before_end(struct arena *a, const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    if (!str_ends(name, end) || (n > k && name[n - k - 1] != '.'))
        return NULL;
    return arena_strndup(a, name, n - k);
}

static bool find_anchor(const struct tensor_source *s, struct arena *a, struct umt5_names *out)
{
    for (size_t k = 0; k < ARRAY_LEN(anchors); k++)
        for (size_t i = 0; i < s->n_tensors; i++) {
            const char *prefix = before_end(a, s->tensors[i].name, anchors[k].end);
            if (!prefix || !source_find(s, arena_printf(a, "%s%s", prefix, anchors[k].with)))
                continue;
            *out = (struct umt5_names){ prefix, anchors[k].official };
            return true;
        }
    return false;
}

/* A pattern of names, and what a file is that has one.  The first row that fits decides. */
static const struct {
    const char *glob, *what;
} others[] = {
    { "*.lora_*", "a LoRA" },
    { "*varlen_t5_*", "a cache of captions" },
    { "latents_*", "a cache of latents" },
    { "*head.modulation", "a Wan transformer" },
    { "*condition_embedder.*", "a Wan transformer" },
    { "*decoder.upsamples.*", "a VAE" },
    { "*decoder.up_blocks.*", "a VAE" },
    { "*decoder.up.*", "a VAE" },
    { "*visual.*", "an image encoder (CLIP)" },
    { "*vision_model.*", "an image encoder (CLIP)" },
    { "*text_model.*", "a text encoder of another kind (CLIP)" },
    { "*.wi.weight", "a T5 encoder without gates, not umT5" },
    { "*double_blocks.*", "a transformer of another model" },
    { "*transformer_blocks.*", "a transformer of another model" },
    { "*.self_attn.q_proj.weight", "a language model" },
    { "*wte.weight", "a language model" },
};

int umt5_names_find(const struct tensor_source *s, struct arena *a, struct umt5_names *out,
                    struct cairn_error *err)
{
    static const char hint[] =
        "model.text_encoder_path takes umT5-XXL: models_t5_umt5-xxl-enc-bf16.pth, umt5_xxl_*.safetensors, or "
        "a folder with text_encoder";
    if (find_anchor(s, a, out)) {
        if (source_find(s, umt5_name(out, a, 1, UMT5_Q)) &&
            !source_find(s, umt5_name(out, a, 1, UMT5_BIAS)) &&
            source_find(s, umt5_name(out, a, 0, UMT5_BIAS))) {
            cairn_fail(err, CAIRN_EFORMAT,
                       "%s is a T5 encoder (of Flux, SD3 or LTX), not umT5: only its first block has a "
                       "relative bias",
                       s->path);
            return cairn_hint(err, "%s", hint);
        }
        return 0;
    }
    for (size_t k = 0; k < ARRAY_LEN(others); k++)
        for (size_t i = 0; i < s->n_tensors; i++)
            if (!fnmatch(others[k].glob, s->tensors[i].name, 0)) {
                cairn_fail(err, CAIRN_EFORMAT, "%s is %s, not an umT5 encoder: it has %.80s", s->path,
                           others[k].what, s->tensors[i].name);
                return cairn_hint(err, "%s", hint);
            }
    cairn_fail(err, CAIRN_EFORMAT, "%s is not an umT5 encoder: it has no %s%s%.80s", s->path, anchors[0].end,
               s->n_tensors ? "; its first tensor is " : " and no tensor at all",
               s->n_tensors ? s->tensors[0].name : "");
    return cairn_hint(err, "%s", hint);
}
