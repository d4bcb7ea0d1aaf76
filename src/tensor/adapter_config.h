/* SPDX-License-Identifier: Apache-2.0
 * PEFT's adapter_config.json: the scale of a LoRA, and what else its file contains.  diffusers stores the
 * same keys in the metadata of the tensor file, prefixed with the name of their model:
 * "transformer.lora_alpha".
 *
 * A key of the wrong type, contradictory values, and everything that is not a plain LoRA (DoRA and similar,
 * an initialisation that modified the base) are errors that name file and key. */
#ifndef CAIRN_TENSOR_ADAPTER_CONFIG_H
#define CAIRN_TENSOR_ADAPTER_CONFIG_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum adapter_layout {
    ADAPTER_LAYOUT_UNKNOWN,
    ADAPTER_LAYOUT_OUT_IN, /* as in torch's Linear */
    ADAPTER_LAYOUT_IN_OUT, /* as in GPT-2's Conv1D: fan_in_fan_out */
};

enum adapter_bias { ADAPTER_BIAS_NONE, ADAPTER_BIAS_ALL, ADAPTER_BIAS_LORA_ONLY };

struct adapter_pattern;

struct adapter_config {
    const char *path;   /* for messages; NULL: none */
    const char *prefix; /* of its keys, and of the modules: "transformer.", "" */
    uint64_t rank;      /* 0: not given */
    double alpha;       /* PEFT's default if not given */
    bool alpha_is_said;
    bool rslora;
    bool lora_bias;
    enum adapter_layout layout;
    enum adapter_bias bias;
    const char *unknown; /* unknown keys that are set: "a, b"; NULL: none */

    /* Private. */
    struct arena arena;
    struct adapter_pattern *ranks, *alphas;
    size_t n_ranks, n_alphas;
    const char **saved;
    size_t n_saved;
};

/* The files of an adapter: path is one file of tensors, a folder of them, or the folder of a run.  `also` is another
 * name that the tensors may have in a folder; may be NULL.  *config is NULL if there is none beside it. */
int adapter_find(struct arena *a, const char *path, const char *also, const char **weights,
                 const char **config, struct cairn_error *err);

int adapter_config_read(struct adapter_config *c, const char *path, struct cairn_error *err);
/* Parses the text of a file's metadata, ADAPTER_METADATA; messages call it `name`.  c stays empty if the text
 * has nothing for models with that prefix. */
#define ADAPTER_METADATA "lora_adapter_metadata"
int adapter_config_parse(struct adapter_config *c, const char *name, const char *text, const char *prefix,
                         struct cairn_error *err);
void adapter_config_release(struct adapter_config *c); /* accepts a zeroed one; for CLEANUP */

/* Of one module, by PEFT's rules for patterns; its name is the model's, "transformer.h.0.attn.c_attn". */
uint64_t adapter_config_rank(const struct adapter_config *c, const char *module); /* 0: not given */
double adapter_config_alpha(const struct adapter_config *c, const char *module);
/* The factor of up * down. */
double adapter_config_scale(const struct adapter_config *c, double alpha, uint64_t rank);
bool adapter_config_has_patterns(const struct adapter_config *c);
/* Whether the module is one of modules_to_save, or part of one. */
bool adapter_config_saves(const struct adapter_config *c, const char *module);

#endif
