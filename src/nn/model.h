/* SPDX-License-Identifier: Apache-2.0
 * A network that can be trained, as the training engine sees it.
 *
 * A model has one or two bases: tables of parameters with their weights, such as the two experts of a
 * video model.  LoRAs may lie over them; then the bases are frozen and the LoRAs are trained.  What is
 * trained comes in sets, one per LoRA (or per base without LoRA): each set has its own optimizer and
 * its own file, and a step trains one set.
 *
 * A concrete model (gpt.h) embeds struct model as its first member and fills it in.  The functions
 * below serve every model; what differs is in model_ops.  A model belongs to its device's thread. */
#ifndef CAIRN_NN_MODEL_H
#define CAIRN_NN_MODEL_H

#include "nn/lora.h"
#include "nn/nn.h"
#include "nn/param_file.h"
#include "nn/weights.h"

enum { MODEL_BASES = 2, MODEL_SETS = 2 };

struct model;
struct work; /* a workspace: memory for passes over batches; see struct work_options */

/* What happens to the resident blocks of the base that is not in use: they stay on the device; or they leave it and
 * come again from copies on the host, or from the file. */
enum model_idle { MODEL_IDLE_DEVICE, MODEL_IDLE_HOST, MODEL_IDLE_FILE };

/* Where frozen weights live. */
struct model_layout {
    uint64_t streamed; /* blocks of each base that are on the host and streamed; MODEL_ALL_BLOCKS: all */
    enum model_idle idle;
};
#define MODEL_ALL_BLOCKS UINT64_MAX

/* Everything points into the concrete model. */
struct model_base {
    struct params *params;
    struct weights *weights;
    enum weights_format format;          /* of quantized matrices */
    const struct weights_blocks *blocks; /* that may be offloaded to the host; pieces 0: none */
};

/* A workspace is opened for the largest batch. A task fills its slots and says how much of each a batch
 * uses. */
struct work_options {
    size_t samples;      /* of a micro-batch */
    size_t extent;       /* positions of the largest sample: tokens, latent cells */
    size_t slots;        /* micro-batches held at once; 0 counts as 1 */
    bool train;          /* for the backward pass too */
    bool recompute;      /* gradient checkpointing: keep the inputs of blocks, and compute the rest again */
    bool inputs_on_host; /* keep the inputs of blocks in host memory (gpu/save_ring.h) */
};

/* The memory of a workspace, on the device but for the last. */
struct work_bytes {
    size_t own; /* activations and batches */
    /* The parts of `own`: saved inputs of the blocks, what the blocks keep besides (with recompute, the working set of
     * one), and batches with what does not grow with blocks.  All 0: not told apart. */
    size_t inputs, block, batch;
    size_t sums;   /* of partial sums; all workspaces of a device share them */
    size_t packed; /* on the CPU: packed operands of matmuls; shared too */
    size_t host;   /* on the host: saved inputs of blocks */
};

struct model_pass {
    size_t slot;
    float scale; /* of the loss's gradient: the loss scale / all units of the step */
    /* Of dropout; each training pass has a stream of its own, which changes with the size of the
     * micro-batches. What belongs to a sample, such as its noise, follows from a number that the task puts in
     * with the batch. */
    uint64_t seed, stream;
    bool learn; /* a training pass, with dropout */
};

/* How a set is written. */
struct model_save {
    size_t set;
    const char *dir; /* exists */
    bool average;    /* the moving average: the tensors alone, under its own name */
    enum dtype dtype;
    const struct param_getter *from; /* where the values of each set come from; NULL: the weights */
    uint64_t step;                   /* how many were trained */
    const char *base;                /* what a LoRA was trained on, for its file; NULL: unknown */
};

struct model_ops {
    const char *kind;
    void (*close)(struct model *m); /* after model_release */

    /* Tables on the device beside the parameters.  NULL: there are none. */
    size_t (*tables_bytes)(const struct model *m);
    int (*tables_alloc)(struct model *m, struct cairn_error *err);
    void (*tables_release)(struct model *m);

    struct work_bytes (*work_bytes)(const struct model *m, const struct work_options *o);
    int (*work_open)(struct model *m, const struct work_options *o, struct work **out,
                     struct cairn_error *err);
    void (*work_close)(struct work *w); /* accepts NULL */
    bool can_save_on_host;              /* it knows inputs_on_host */
    /* Forward; and backward where `grads` is given, which adds to it.  Queued, not waited for. */
    int (*run)(struct work *w, const struct model_pass *p, const struct weights *grads,
               struct cairn_error *err);
    /* Waits.  The sum of a slot's losses, and over how many units (tokens, samples) it goes. */
    int (*loss)(struct work *w, size_t slot, double *sum, double *units, struct cairn_error *err);

    /* The name of a set's file in a checkpoint. */
    const char *(*file_name)(const struct model *m, size_t set, bool average);
    int (*save)(const struct model *m, const struct model_save *s, struct cairn_error *err);
    int (*load)(struct model *m, size_t set, const char *path, struct param_report *report,
                struct cairn_error *err);
    /* Files are for other programs and may be rounded: checkpoints hold the values themselves too, and a resumed
     * run loads these. */
    bool has_rounded_files;
};

struct model {
    const struct model_ops *ops;
    struct nn *nn;
    struct model_base bases[MODEL_BASES];
    size_t n_bases;
    struct lora *loras[MODEL_SETS];
    size_t n_loras; /* 0: the bases themselves are trained */

    struct model_layout layout; /* once it is allocated */
    size_t used;                /* the base whose blocks are on the device, where only one's are */
    bool used_is_loaded;        /* with their values */
};

/* ---- what is trained ---- */

size_t model_sets(const struct model *m);
const struct params *model_trained(const struct model *m, size_t set);
struct weights *model_trained_weights(const struct model *m, size_t set);
uint64_t model_parameters(const struct model *m);         /* of the bases */
uint64_t model_trained_parameters(const struct model *m); /* of all sets */

/* ---- memory ---- */

/* The memory of the weights in parts, on the device but for `host`.  Of bases that take turns, the first has the blocks
 * that are on the device. */
struct model_parts {
    size_t bases[MODEL_BASES], loras[MODEL_SETS];
    size_t windows; /* through which streamed blocks pass */
    size_t tables;
    size_t host[MODEL_BASES];
};
struct model_parts model_parts(const struct model *m, const struct model_layout *l);
/* The device and host memory of the weights. */
size_t model_bytes(const struct model *m, const struct model_layout *l, size_t *host);
/* Zeroed weights.  After a failure some may be allocated: call model_release.  NULL: all on the device. */
int model_alloc(struct model *m, const struct model_layout *l, struct cairn_error *err);
void model_release(struct model *m);
void model_close(struct model *m); /* accepts NULL */
bool model_is_allocated(const struct model *m);

/* Blocks of frozen weights can live on the host and are streamed to the device one by one. */
uint64_t model_blocks(const struct model *m);   /* of the base that has most; 0: none can */
bool model_is_offloaded(const struct model *m); /* blocks of any base */
/* Moves the blocks of all bases or, on failure, none where that is possible: m->layout says where they are.  An
 * idle base that left the device does not come back. */
int model_move_blocks(struct model *m, const struct model_layout *to, struct cairn_error *err);

/* Two bases of the same shape can take turns on the device. */
bool model_can_take_turns(const struct model *m);
/* Makes the blocks of a base ready for the next pass; nothing else of the model may be under way.  *load: the caller
 * must fill the base from its file, and then call model_is_loaded.  Before the first call, the first base is. */
int model_use_base(struct model *m, size_t base, bool *load, struct cairn_error *err);
void model_is_loaded(struct model *m);
/* Why the host dequantizes weights in place of the device, or has quantized those of a file; NULL: it does not. */
const struct cairn_error *model_host_dequant(const struct model *m);
const struct cairn_error *model_host_quant(const struct model *m);

#endif
