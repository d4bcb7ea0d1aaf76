/* SPDX-License-Identifier: Apache-2.0
 * GPT models and their LoRAs in common file formats.
 *
 * A model is a folder with config.json and model.safetensors.  Names and layout are those of Hugging
 * Face's GPT-2 (Conv1D matrices, [in, out]) or Llama; a mixture that neither class can express has
 * Llama's names, and "model_type": "cairn-gpt" in its config.json.  A LoRA is a folder in the format of
 * PEFT.  The bytes depend on the weights and the shape alone.
 *
 * Such folders can be read, and sharded ones, single files beside a config.json, torch's files
 * (pytorch_model.bin, .pt) and those of nanoGPT ([out, in]). */
#ifndef CAIRN_NN_GPT_FILE_H
#define CAIRN_NN_GPT_FILE_H

#include "nn/gpt.h"
#include "nn/param_file.h"

/* Writes config.json and then the tensors into a folder that exists.  from may be NULL: the weights. */
int gpt_file_save(const struct gpt *m, const char *dir, enum dtype dtype, const struct param_getter *from,
                  struct cairn_error *err);
/* The tensors alone, into a file. */
int gpt_file_save_tensors(const struct gpt *m, const char *path, enum dtype dtype,
                          const struct param_getter *from, struct cairn_error *err);

/* path: a folder or a file. Without a config.json the shape comes from the tensors, but for the number of
 * heads: that is what s->heads is on entry, and 0 is an error. dropout is left at 0. */
int gpt_file_shape(const char *path, struct gpt_shape *s, struct cairn_error *err);

/* Loads a file into a model of its shape.  The report is filled even on failure; release it. */
int gpt_file_load(struct gpt *m, const char *path, struct param_report *report, struct cairn_error *err);

struct gpt_lora_file {
    const struct lora_options *options; /* that the model was opened with */
    const char *base;                   /* the name or the folder of the base model; NULL: unknown */
    const char *copy;                   /* the name of a second file with the same tensors; NULL: none */
    enum dtype dtype;
    const struct param_getter *from; /* NULL: the weights */
};
/* Writes adapter_config.json and adapter_model.safetensors into a folder that exists. */
int gpt_file_save_lora(const struct gpt *m, const char *dir, const struct gpt_lora_file *f,
                       struct cairn_error *err);
int gpt_file_save_lora_tensors(const struct gpt *m, const char *path, enum dtype dtype,
                               const struct param_getter *from, struct cairn_error *err);
/* path: such a folder, or a file of the tensors; an adapter_config.json beside it must agree with the
 * model. */
int gpt_file_load_lora(struct gpt *m, const char *path, struct param_report *report, struct cairn_error *err);

#endif
