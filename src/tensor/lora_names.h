/* SPDX-License-Identifier: Apache-2.0
 * The names of a LoRA's tensors in each dialect.
 *
 * A LoRA file has for each module of the model a `down` matrix [rank, in], an `up` matrix [out, rank] and
 * maybe an `alpha`.  Three families of programs spell the same thing differently:
 *
 *     musubi      lora_unet_blocks_3_self_attn_q.lora_down.weight     also kohya
 *     comfy       diffusion_model.blocks.3.self_attn.q.lora_A.weight  ComfyUI, ai-toolkit, diffusion-pipe
 *     diffusers   transformer.blocks.3.attn1.to_q.lora_A.weight       also PEFT
 *
 * Here a module is called by the model's own name, "blocks.3.self_attn.q".  The modules of Wan are a table,
 * and only they can be given another dialect's name; a module of another model is parsed, but is not
 * `known`.  Pure functions of text. */
#ifndef CAIRN_TENSOR_LORA_NAMES_H
#define CAIRN_TENSOR_LORA_NAMES_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

enum { LORA_NAME_MAX = 256 };

enum lora_dialect {
    LORA_ANY, /* unknown: the name is the same in several dialects */
    LORA_MUSUBI,
    LORA_COMFY,
    LORA_DIFFUSERS,
    LORA_DIALECT_COUNT,
};

enum lora_part {
    LORA_DOWN,
    LORA_UP,
    LORA_ALPHA,
    LORA_DIFF,    /* a whole difference of the weight, as some extraction tools write for norms */
    LORA_DIFF_B,  /* the same of the bias */
    LORA_UP_BIAS, /* of the up matrix: with the scale it is a difference of the bias */
    LORA_WHOLE,   /* the weight itself, in place of the base's */
    LORA_WHOLE_B, /* the same of the bias */
    LORA_PART_COUNT,
};

enum lora_expert { LORA_EXPERT_ANY, LORA_EXPERT_HIGH, LORA_EXPERT_LOW, LORA_EXPERTS }; /* noise */

struct lora_name {
    char module[LORA_NAME_MAX]; /* the model's own name if known, else as in the key */
    bool known;                 /* in the table of modules */
    bool embedding;             /* a table that is indexed: its weight is [in, out] */
    enum lora_part part;
    enum lora_dialect dialect;
    enum lora_expert expert; /* of a model with two; LORA_EXPERT_ANY: not given */
};

const char *lora_dialect_name(enum lora_dialect d); /* "musubi" */
/* Also accepts "kohya", "comfyui", "peft"; LORA_ANY if unknown. */
enum lora_dialect lora_dialect_parse(const char *name);

/* Fails on a key that is no part of a LoRA, or of a kind that is not plain LoRA (DoRA, LoHa, LoKr), and names
 * it. */
int lora_name_parse(const char *key, struct lora_name *out, struct cairn_error *err);
/* A key of PEFT that stands for a tensor as a whole: "base_model.model.lm_head.weight".  False if it is
 * none. */
bool lora_name_parse_whole(const char *key, struct lora_name *out);
/* The module by the name that PEFT knows it by, "transformer.h.0.attn.c_attn": the key of a part without what
 * PEFT puts before and after it.  path holds LORA_NAME_MAX bytes. */
void lora_name_path(const char *key, char *path);
/* The key of a known module's part; into size bytes.  Fails where the dialect has no such key. */
int lora_name_format(const char *module, enum lora_part part, enum lora_dialect d, char *key, size_t size,
                     struct cairn_error *err);

/* The name that diffusers has for a known module of the base model: "blocks.3.attn1.to_q" for
 * "blocks.3.self_attn.q".  False if it is in no table or longer than size. */
bool lora_module_diffusers(const char *module, char *name, size_t size);

/* The module of a base model's "….weight" or "….bias", whichever prefix and spelling the checkpoint has;
 * false for other keys.  module holds LORA_NAME_MAX bytes. */
bool lora_base_name(const char *key, char *module, bool *is_bias);
/* Whether two module names are equal except for '.' and '_', which the musubi dialect does not
 * distinguish. */
int lora_module_compare(const char *a, const char *b);

#endif
