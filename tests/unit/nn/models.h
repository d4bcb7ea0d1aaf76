/* SPDX-License-Identifier: Apache-2.0
 * Small GPT models of every kind. */
#ifndef CAIRN_TESTS_UNIT_NN_MODELS_H
#define CAIRN_TESTS_UNIT_NN_MODELS_H

#include "nn/gpt_file.h"
#include "on_cpu.h"

#define COMMON .layers = 2, .heads = 4, .width = 32, .context = 8, .vocab = 21, .norm_epsilon = 1e-5f
static const struct {
    const char *name, *type;
    struct gpt_shape shape;
} kinds[] = {
    { "gpt2", "gpt2", { COMMON, .kv_heads = 4, .ffn = 128, .bias = true, .tied = true } },
    { "gpt2 untied, narrow", "gpt2", { COMMON, .kv_heads = 4, .ffn = 40, .bias = true } },
    { "llama with shared heads",
      "llama",
      { COMMON, .kv_heads = 2, .ffn = 48, .norm = NN_NORM_RMS, .rope = true, .swiglu = true,
        .rope_theta = 500000 } },
    { "llama tied, with biases",
      "llama",
      { COMMON, .kv_heads = 1, .ffn = 48, .norm = NN_NORM_RMS, .rope = true, .swiglu = true, .bias = true,
        .tied = true, .rope_theta = 10000 } },
    { "rope with layer norm",
      "cairn-gpt",
      { COMMON, .kv_heads = 2, .ffn = 48, .rope = true, .bias = true, .rope_theta = 12345.678f } },
    { "learned positions with swiglu",
      "cairn-gpt",
      { COMMON, .kv_heads = 4, .ffn = 48, .swiglu = true, .norm = NN_NORM_RMS, .tied = true } },
    { "gpt2 without biases", "cairn-gpt", { COMMON, .kv_heads = 4, .ffn = 128, .tied = true } },
};

static inline struct gpt *open_model(struct nn *nn, const struct gpt_shape *s, const struct gpt_options *o)
{
    static const struct gpt_options none;
    struct cairn_error err = { 0 };
    struct gpt *m = NULL;
    if (gpt_open(nn, s, o ? o : &none, &m, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    return m;
}

#endif
