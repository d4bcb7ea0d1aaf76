/* SPDX-License-Identifier: Apache-2.0
 * A small model with the shape of a video LoRA, behind the contract of nn/model.h: two frozen experts, one for much
 * noise and one for little, and one LoRA for both or one for each.
 *
 * An expert is a row of blocks, x += proj(gelu(fc(norm(x)))), and a linear behind them.  It sees a clip with noise added and
 * learns to tell the noise. */
#ifndef CAIRN_TESTS_UNIT_TRAIN_TOY_MODEL_H
#define CAIRN_TESTS_UNIT_TRAIN_TOY_MODEL_H

#include "nn/model.h"

enum { TOY_EXPERTS = 2, TOY_LINEARS = 2 /* of a block: fc, proj */ };

struct toy_options {
    size_t layers, width, ffn;
    bool quantize;        /* the blocks' matrices are int8 */
    bool lora_per_expert; /* else one for both */
    struct lora_options lora;
};

struct toy_expert {
    struct params params;
    struct weights weights;
    struct weights_blocks blocks;
};

struct toy {
    struct model model; /* first */
    struct toy_options o;
    struct toy_expert experts[TOY_EXPERTS];
    struct lora loras[TOY_EXPERTS];
    struct lora_site *sites[TOY_EXPERTS]; /* of each LoRA: of each linear of the blocks */
};

/* Without memory. */
int toy_new(struct nn *nn, const struct toy_options *o, struct toy **out, struct cairn_error *err);
int toy_init(struct toy *m, uint64_t seed, struct cairn_error *err);
int toy_init_expert(struct toy *m, size_t expert, uint64_t seed, struct cairn_error *err);

/* Clips of one size.  Everything is copied. */
struct toy_batch {
    size_t samples, extent; /* extent: positions of each clip */
    size_t expert;
    uint64_t first;      /* number of the first sample: its noise follows from the seed and this */
    const void *latents; /* samples × extent × width, in the storage format */
    const float *times;  /* of each sample: how much of it is noise, 0 to 1 */
};
int toy_put(struct work *w, size_t slot, const struct toy_batch *b, struct cairn_error *err);
/* After a pass: what the model said, extent × width numbers in the storage format, on the device. */
const void *toy_output(const struct work *w);

#endif
