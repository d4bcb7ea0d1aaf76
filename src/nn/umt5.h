/* SPDX-License-Identifier: Apache-2.0
 * The umT5 encoder, which turns captions into the features that Wan's transformer reads.
 *
 * A layer is self attention over a prompt, whose scores get a bias by distance (a table in every layer, and no
 * 1/sqrt(size)), and a gated GELU MLP.  The residual stream is f32 whatever the storage, because values of this
 * model exceed f16.  Where the storage format of struct nn is f32, computation is in f32; else it is in f16, also for
 * bf16: f16 takes the same time and memory, and rounds to an eighth.  Prompts have their exact lengths: their rows are packed for the matmuls, and attention runs over
 * each prompt by itself.
 *
 * Where the weights do not fit into the budget, some layers stay in the file: a thread reads the next one while this
 * one computes.  The layers are the outer loop then, so that each is read once for a group of prompts.  Rows of the
 * embedding are read from the file as they are needed, unless the whole table fits.
 *
 * Files: safetensors (single, shards, an index), .pth; official or Hugging Face names after any prefix; f32, f16,
 * bf16, fp8 with and without scales.  A folder may be diffusers' root, its text_encoder, or an official one.  An object
 * belongs to its device's thread. */
#ifndef CAIRN_NN_UMT5_H
#define CAIRN_NN_UMT5_H

#include "base/str.h"
#include "nn/nn.h"
#include "tensor/dtype.h"

struct umt5;

struct umt5_prompt {
    const uint32_t *ids; /* with the end of the text, id 1 */
    size_t n;
};
struct umt5_sink {
    /* The rows, n × dim, of a prompt; called once for each, in any order. */
    int (*write)(void *ctx, size_t prompt, const float *rows, struct cairn_error *err);
    void *ctx;
};
/* Both functions may be NULL. */
struct umt5_hooks {
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* in rows × layers */
    bool (*stop)(void *ctx); /* asked between layers; true ends it with an error */
    void *ctx;
};

struct umt5_info {
    size_t vocab, dim, attention_dim, heads, ffn, layers;
    enum dtype dtype;   /* of the matrices */
    bool scaled;        /* fp8 with scales */
    bool keeps_fp8;     /* the matrices stay fp8 on the device, and are dequantized when they are used */
    bool has_tokenizer; /* in the file: umt5_read_tokenizer */
    bool official;      /* names; else Hugging Face's */
    size_t files;
};
/* Fails for what is no umT5, and says what it is. */
int umt5_read_info(const char *path, struct umt5_info *out, struct cairn_error *err);
/* The bytes of spiece.model that ComfyUI's files hold.  CAIRN_ELACK: the file has none. */
int umt5_read_tokenizer(const char *path, struct str *spiece, struct cairn_error *err);

/* Where the memory goes.  Of the device, matmul libraries and kernels take a little besides. */
struct umt5_layout {
    size_t resident;    /* layers that stay on the device; the others come from the file */
    size_t windows;     /* layers from the file that are on the device at a time */
    bool embedding;     /* the whole table is on the device */
    size_t rows;        /* tokens of a pass, and of the longest prompt */
    uint64_t weights;   /* device bytes */
    uint64_t work;      /* device bytes: activations of a pass */
    uint64_t host_most; /* host bytes: a layer on its way, and rows of a group of prompts */
};
#define UMT5_NO_LIMIT UINT64_MAX
/* The fastest layout within so many bytes of the device.  CAIRN_ENOMEM names what the smallest one needs. */
int umt5_plan(const struct umt5_info *info, const struct nn *nn, uint64_t budget, struct umt5_layout *out,
              struct cairn_error *err);

/* nn must outlive it. */
int umt5_open(struct umt5 **out, struct nn *nn, const char *path, uint64_t budget, struct cairn_error *err);
void umt5_close(struct umt5 *u); /* accepts NULL; also on a lost device */
const struct umt5_info *umt5_info(const struct umt5 *u);
const struct umt5_layout *umt5_layout(const struct umt5 *u);

/* A row with NaN or Inf, or whose values are all the same, is an error (CAIRN_EFORMAT) with the prompt and the first
 * layer that made it.  NaN and Inf in f16 are CAIRN_EDEVICE: f32, on the CPU, tells whether its range was the reason.  h
 * may be NULL. */
int umt5_encode(struct umt5 *u, const struct umt5_prompt *prompts, size_t n, const struct umt5_sink *sink,
                const struct umt5_hooks *h, struct cairn_error *err);

/* The row of the bias table for a key that is so far behind the query. */
size_t umt5_bucket(long distance);

#endif
