/* SPDX-License-Identifier: Apache-2.0
 * Generates text from a model, token by token. */
#ifndef CAIRN_TRAIN_SAMPLE_H
#define CAIRN_TRAIN_SAMPLE_H

#include "nn/gpt_work.h"
#include "text/tokenizer.h"
#include <signal.h>

struct sample_options {
    size_t tokens;
    double temperature; /* 0: always the most likely */
    size_t top_k;       /* only the k most likely; 0: all */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* Ctrl-C; may be NULL */
};

/* Seed for a run's prompt, so that the same model generates the same text. */
uint64_t sample_seed(uint64_t seed, size_t index);

struct sampler;
/* Its workspace holds as many tokens as the model's context, or `tokens` if that is less. */
int sampler_open(struct gpt *m, const struct tokenizer *t, size_t tokens, struct sampler **out,
                 struct cairn_error *err);
void sampler_close(struct sampler *s);
/* The options of that workspace. */
struct gpt_work_options sampler_work_options(const struct gpt *m, size_t tokens);
/* Appends the prompt and its continuation to out; stops early at the end-of-text token.  When the workspace
 * is full, the oldest tokens are dropped. */
int sampler_run(struct sampler *s, const char *prompt, const struct sample_options *o, struct str *out,
                struct cairn_error *err);

#endif
