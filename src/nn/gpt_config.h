/* SPDX-License-Identifier: Apache-2.0
 * The shape of a GPT in a config.json, as Hugging Face's transformers writes and reads it: model_type
 * gpt2 or llama (mistral is read too), or our own cairn-gpt for a mixture that neither can express.
 *
 * A shape that cannot be computed here is refused, with the key that asks for it. */
#ifndef CAIRN_NN_GPT_CONFIG_H
#define CAIRN_NN_GPT_CONFIG_H

#include "base/json.h"
#include "nn/gpt.h"
#include "tensor/dtype.h"

/* Writes this JSON to a file, whole or not at all. */
int gpt_config_save(const struct json *v, const char *path, struct cairn_error *err);

/* dropout is not read: it is the trainer's choice. */
int gpt_config_read(const char *path, struct gpt_shape *out, struct cairn_error *err);
int gpt_config_write(const struct gpt_shape *s, enum dtype dtype, const char *path, struct cairn_error *err);

/* A float as a number of JSON, with the fewest digits that read back as the same float. */
void gpt_config_add_real(struct json *to, const char *key, float v);

#endif
