/* SPDX-License-Identifier: Apache-2.0
 * LoRA files: which modules they change and by how much, and conversion between their dialects.
 *
 * A module's weight changes by scale * up * down.  scale is alpha / rank (alpha / sqrt(rank) for rslora),
 * with alpha from the file, else from the adapter_config.json of PEFT beside it, else the rank.  The keys
 * show the dialect.  Errors, which name the key: mixed dialects or experts, a missing or duplicate part,
 * shapes that do not fit or contradict the configuration, and a key that is not part of a LoRA. */
#ifndef CAIRN_TENSOR_LORA_H
#define CAIRN_TENSOR_LORA_H

#include "tensor/adapter_config.h"
#include "tensor/lora_names.h"
#include "tensor/source.h"
#include <signal.h>

struct lora_module {
    const char *name;                              /* the model's own name: "blocks.3.self_attn.q" */
    bool known;                                    /* has a name in every dialect */
    const struct st_tensor *part[LORA_PART_COUNT]; /* NULL: missing; down and up come together */
    bool embedding;                                /* its weight is [in, out] */
    uint64_t rank, in, out;                        /* of down [rank, in] and up [out, rank] */
    double scale;                                  /* the factor of up * down; 1 if not given */
};

/* Remarks for the user: where the scale came from, and what was guessed. */
struct lora_basis {
    char config[300];       /* the adapter_config.json, or metadata, that was used; "": none */
    bool config_ignored;    /* there is one, but the keys are not PEFT's */
    size_t alpha_guessed;   /* modules without alpha: the rank is assumed */
    bool alpha_default;     /* adapter_config.json has none: PEFT's default is assumed */
    char unknown_keys[200]; /* of adapter_config.json, that are set; "": none */
};

struct lora_file {
    struct tensor_source source;
    enum lora_dialect dialect;   /* LORA_ANY if no key shows it */
    struct lora_module *modules; /* in the order of the file */
    size_t n_modules;
    struct lora_basis basis;
    struct adapter_config config; /* zeroed if none is used */
};

/* path: a file, or the folder of an adapter.  Names and modules belong to l and die with it. */
int lora_open(struct lora_file *l, const char *path, struct cairn_error *err);
/* Of a file that has the LoRAs of both experts of a model, that of one; other files open as above. */
int lora_open_expert(struct lora_file *l, const char *path, enum lora_expert expert, struct cairn_error *err);
void lora_close(struct lora_file *l); /* accepts a zeroed one; for CLEANUP */

/* The rank of all modules, which must be the same, and alpha; 0: modules differ in it. */
int lora_read_strength(const char *path, uint64_t *rank, double *alpha, struct cairn_error *err);

/* Rewrites a file in another dialect.  Where alpha is not 1 per rank, it is folded into the matrices: both
 * times the root of the scale for comfy (in 16 bits alpha is kept if that would round); all of it into down for diffusers, with powers of two moved to up as
 * diffusers' own reader does.  For musubi it is kept, or written as the rank.  dtype DTYPE_OTHER keeps each
 * tensor's own; alpha is never narrowed.  Order and metadata are carried over, but for the hashes of the old
 * data. */
struct lora_rewrite {
    enum lora_dialect to;
    enum dtype dtype;
    bool replace;                      /* an existing file may be replaced */
    const volatile sig_atomic_t *stop; /* or NULL; when it becomes true, converting fails */
};
struct lora_report {
    enum lora_dialect from;
    size_t modules, folded; /* folded: those whose matrices were scaled */
    struct lora_basis basis;
    uint64_t odd; /* NaN and Inf values, unchanged */
};
int lora_convert(const char *in, const char *out, const struct lora_rewrite *o, struct lora_report *report,
                 struct cairn_error *err);
/* What the matrices are multiplied by for a dialect without alpha. */
void lora_fold(enum lora_dialect d, double scale, double *down, double *up);
/* Fails, naming the tensor, when a finite number is beyond what the kind can hold: an infinite weight in its
 * place would ruin a model without a word. */
int lora_check_fits(const struct st_tensor *t, const float *v, size_t n, enum dtype to,
                    struct cairn_error *err);
/* Metadata that holds a hash of the data, and is wrong once the data is changed. */
bool lora_meta_is_hash(const char *key);

#endif
