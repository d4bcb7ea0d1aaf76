/* SPDX-License-Identifier: Apache-2.0
 * Text from a model: one token after the other, each drawn from what the model expects. */
#ifndef CAIRN_TRAIN_SAMPLE_H
#define CAIRN_TRAIN_SAMPLE_H

#include "nn/gpt_work.h"
#include "text/tokenizer.h"

struct sample_options {
    size_t tokens;
    double temperature; /* 0: always the most likely */
    size_t top_k;       /* only the k most likely; 0: all */
    uint64_t seed;
};

/* Of a run's prompt, so that the same model says the same again. */
uint64_t sample_seed(uint64_t seed, size_t index);

struct sampler;
/* Its room is for as many tokens as the model's context, or `tokens` if that is less. */
int sampler_open(struct gpt *m, const struct tokenizer *t, size_t tokens, struct sampler **out,
                 struct cairn_error *err);
void sampler_close(struct sampler *s);
/* What such a room is like. */
struct gpt_work_options sampler_work_options(const struct gpt *m, size_t tokens);
/* Adds the prompt and what follows to out; ends early at the end of a text.  What lies further back than the room is
 * forgotten. */
int sampler_run(struct sampler *s, const char *prompt, const struct sample_options *o, struct str *out,
                struct cairn_error *err);

#endif
