/* SPDX-License-Identifier: Apache-2.0
 * Cases of golden data: numbers that another implementation made, which ours must make again. */
#ifndef CAIRN_TESTS_GOLDEN_H
#define CAIRN_TESTS_GOLDEN_H

#include "base/arena.h"
#include "base/json.h"
#include "gpu/gpu.h"
#include "tensor/safetensors.h"

struct golden_other {
    const struct st_file *file; /* NULL: a case of its own */
    const char *path;
    bool used;
};

struct golden {
    struct gpu *g;
    enum gpu_storage storage;
    struct arena arena;            /* of this case */
    const struct st_file *file;    /* the file that makes the case */
    const struct st_file *weights; /* the ones that go with it; NULL: none */
    const struct st_file *lora;
    double share16; /* what 16-bit tensors are allowed; 0: 0.04 in bf16, 0.02 in f16 */
    double worst;   /* error, as a share of what is allowed */
    double worst_error, tolerance;
    struct golden_other *others; /* of the folder; a case marks those that it used besides */
    size_t n_others;
    char worst_name[128];
    struct cairn_error err;
};

/* What a kind is recognised by, and what runs it: 0, or -1 with c->err.  Differences are told by golden_compare. */
struct golden_kind {
    const char *name;
    bool (*is)(const struct st_file *f);
    int (*run)(struct golden *c);
};
extern const struct golden_kind golden_gpt, golden_adamw, golden_adamw8, golden_fp8;
extern const struct golden_kind golden_times, golden_solver, golden_cache, golden_lora, golden_wan,
    golden_umt5;
extern const struct golden_kind golden_vae;

/* All numbers of a tensor; NULL, with c->err, if it is not there. */
float *golden_floats(struct golden *c, const struct st_file *f, const char *name, size_t *n);
int *golden_ints(struct golden *c, const struct st_file *f, const char *name, size_t *n);
uint8_t *golden_bytes(struct golden *c, const struct st_file *f, const char *name, size_t *n);
/* The metadata "config"; NULL, with c->err, if it is not JSON. */
struct json *golden_config(struct golden *c);

/* max|a - b| against share * max|b|, but at least share * least. */
void golden_compare(struct golden *c, const char *name, const float *a, const float *b, size_t n,
                    double share, double least);
/* Where 16-bit tensors are tried, what is allowed is this share at least. */
double golden_share(const struct golden *c, double share);

#endif
