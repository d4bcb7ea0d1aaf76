/* SPDX-License-Identifier: Apache-2.0
 * GPT: a transformer that predicts the next token, as GPT-2 is (learned positions, layer norm, GELU,
 * biases) or as Llama is (rotary positions, RMS norm, SwiGLU, fewer heads for keys and values), or
 * anything between.
 *
 * Blocks are x += attention(norm(x)); x += mlp(norm(x)).  Parameters have the names and the layout
 * ([out, in]) of nanoGPT; gpt_file.h handles other formats.  q, k and v of a block are one matrix, one
 * above the other.
 *
 * A model holds weights; a workspace (gpt_work.h) holds what passes over a batch need. */
#ifndef CAIRN_NN_GPT_H
#define CAIRN_NN_GPT_H

#include "nn/model.h"

struct gpt_shape {
    size_t layers, heads, kv_heads, width, ffn, context, vocab;
    enum nn_norm_kind norm;
    bool rope, swiglu, bias, tied;
    float norm_epsilon, rope_theta;
    float dropout; /* of what a block adds and of the embedding; attention's weights have none */
};

/* CAIRN_EUSAGE with what is wrong. */
int gpt_shape_check(const struct gpt_shape *s, struct cairn_error *err);
size_t gpt_head_size(const struct gpt_shape *s);
size_t gpt_qkv_rows(const struct gpt_shape *s);
/* All that GPT-2 has and nothing else: its files then have GPT-2's names, else Llama's. */
bool gpt_is_gpt2(const struct gpt_shape *s);

enum gpt_matrix { GPT_QKV, GPT_PROJ, GPT_FC, GPT_UP, GPT_DOWN, GPT_MATRICES }; /* GPT_UP: with SwiGLU only */
/* How others divide and call a matrix of a block: its parts from the top, under their names in a block. */
struct gpt_part {
    const char *module; /* "attn.c_attn", "self_attn.q_proj"; NULL: no further part */
    size_t first, rows;
};
enum { GPT_PARTS = 3 };
void gpt_parts(const struct gpt_shape *s, enum gpt_matrix m, struct gpt_part out[GPT_PARTS]);
/* The name before a block's number: "transformer.h", "model.layers". */
const char *gpt_blocks_name(const struct gpt_shape *s);

struct gpt_linear {
    size_t w, b; /* indices of parameters; b where shape.bias */
    size_t in, out;
    struct lora_site lora;
};
struct gpt_norm {
    size_t w, b;
};
struct gpt_block {
    struct gpt_norm norm[2];
    struct gpt_linear linear[GPT_MATRICES];
};

struct gpt {
    struct model model; /* as the training engine sees it */
    struct nn *nn;
    struct gpt_shape shape;
    struct params params;
    struct weights weights;
    struct lora lora; /* rank 0: none, and the weights themselves are trained */
    struct gpt_block *blocks;
    size_t wte, wpe, head; /* wpe without rope; head is wte where tied */
    struct gpt_norm norm;
    size_t vocab_padded; /* rows of wte and head in memory */
    float *rope_cos, *rope_sin;
    enum weights_format format;       /* of quantized matrices */
    struct weights_blocks frozen;     /* that can be offloaded; pieces 0: none */
    struct lora_options lora_options; /* that the LoRA was made with */
    float label_smoothing;            /* in training passes that the engine starts; set by its owner */
};

enum gpt_quantize { GPT_QUANTIZE_NONE, GPT_QUANTIZE_INT8, GPT_QUANTIZE_FP8 };
struct gpt_options {
    enum gpt_quantize quantize;      /* of the blocks' matrices */
    const struct lora_options *lora; /* may be NULL */
    bool blocks_on_host; /* with LoRA: the matrices of the blocks are streamed from the host as needed */
};
/* With zeroed weights. */
int gpt_open(struct nn *nn, const struct gpt_shape *s, const struct gpt_options *o, struct gpt **out,
             struct cairn_error *err);
/* Without allocating, to compute the size; then model_alloc. */
int gpt_new(struct nn *nn, const struct gpt_shape *s, const struct gpt_options *o, struct gpt **out,
            struct cairn_error *err);
void gpt_close(struct gpt *m); /* accepts NULL */
/* New weights as GPT-2 has them: normal values with init_std, smaller for what is added to the residual;
 * norms 1, biases 0. From the seed alone, whatever the device. gpt_init_lora: a normal, b zero. */
int gpt_init(struct gpt *m, float init_std, uint64_t seed, struct cairn_error *err);
int gpt_init_lora(struct gpt *m, uint64_t seed, struct cairn_error *err);

#endif
