/* SPDX-License-Identifier: Apache-2.0
 * PEFT's adapter_config.json: how strong a LoRA is, and what else its file holds.  diffusers keeps the same keys in the
 * metadata of the file itself, behind the name of the model that they are for: "transformer.lora_alpha".
 *
 * A key of the wrong type, a value that contradicts another, and everything that makes of the matrices something other
 * than a plain LoRA (DoRA and its kin, an initialisation that changed the base) is an error that names file and key. */
#ifndef CAIRN_TENSOR_ADAPTER_CONFIG_H
#define CAIRN_TENSOR_ADAPTER_CONFIG_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum adapter_layout {
    ADAPTER_LAYOUT_UNKNOWN,
    ADAPTER_LAYOUT_OUT_IN, /* as torch's Linear keeps a weight */
    ADAPTER_LAYOUT_IN_OUT, /* as GPT-2's Conv1D does: fan_in_fan_out */
};

enum adapter_bias { ADAPTER_BIAS_NONE, ADAPTER_BIAS_ALL, ADAPTER_BIAS_LORA_ONLY };

struct adapter_pattern;

struct adapter_config {
    const char *path;   /* for messages; NULL: there is none */
    const char *prefix; /* of its keys, and of the modules: "transformer.", "" */
    uint64_t rank;      /* 0: not said */
    double alpha;       /* PEFT's own default where it is not said */
    bool alpha_is_said;
    bool rslora;
    bool lora_bias;
    enum adapter_layout layout;
    enum adapter_bias bias;
    const char *unknown; /* keys that are set and that nobody here knows: "a, b"; NULL: none */

    /* Inside. */
    struct arena arena;
    struct adapter_pattern *ranks, *alphas;
    size_t n_ranks, n_alphas;
    const char **saved;
    size_t n_saved;
};

/* The files of an adapter: path is one file of tensors, a folder of them, or the folder of a run.  *config is NULL where none lies beside it. */
int adapter_find(struct arena *a, const char *path, const char **weights, const char **config,
                 struct cairn_error *err);

int adapter_config_read(struct adapter_config *c, const char *path, struct cairn_error *err);
/* The text of a file's metadata, ADAPTER_METADATA; name is for messages.  Where it says nothing of models with that prefix,
 * c stays empty. */
#define ADAPTER_METADATA "lora_adapter_metadata"
int adapter_config_parse(struct adapter_config *c, const char *name, const char *text, const char *prefix,
                         struct cairn_error *err);
void adapter_config_release(struct adapter_config *c); /* accepts a zeroed one; for CLEANUP */

/* Of one module, by PEFT's rules for patterns; its name is the model's, "transformer.h.0.attn.c_attn". */
uint64_t adapter_config_rank(const struct adapter_config *c, const char *module); /* 0: not said */
double adapter_config_alpha(const struct adapter_config *c, const char *module);
/* The factor of up * down. */
double adapter_config_scale(const struct adapter_config *c, double alpha, uint64_t rank);
bool adapter_config_has_patterns(const struct adapter_config *c);
/* Is the module one of modules_to_save, or part of one? */
bool adapter_config_saves(const struct adapter_config *c, const char *module);

#endif
