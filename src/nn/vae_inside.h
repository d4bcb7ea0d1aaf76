/* SPDX-License-Identifier: Apache-2.0
 * What the files of the VAE share: its table of layers, and a pass over them. */
#ifndef CAIRN_NN_VAE_INSIDE_H
#define CAIRN_NN_VAE_INSIDE_H

#include "nn/param_file.h"
#include "nn/vae.h"

enum { VAE_STAGES = 4, VAE_MOST_CONVS = 64, VAE_INPUT_ALIGN = 8 };

/* ---- layers ---- */

enum vae_op {
    VAE_CONV,      /* 3 × 3 × 3 */
    VAE_RESIDUAL,  /* norm, SiLU, convolution, twice; plus its input */
    VAE_ATTENTION, /* of each frame, one head */
    VAE_DOWN,      /* half the height and width; with `time` half the frames but the first */
    VAE_UP,        /* the opposite */
    VAE_HEAD,      /* norm, SiLU, convolution */
    VAE_MIX,       /* 1 × 1 × 1 */
    VAE_STAGE,     /* Wan 2.2: keep the input for the end of the stage */
    VAE_STAGE_DOWN,
    VAE_STAGE_UP, /* and add it, made smaller or larger */
};
struct vae_weights {
    size_t w, b; /* of params */
};
struct vae_layer {
    enum vae_op op;
    const char *name; /* "encoder.downsamples.0" */
    size_t in, out;   /* channels */
    bool time;
    size_t by_space; /* of the end of a stage: 1 or 2 */
    size_t norm[2];
    struct vae_weights conv[3]; /* the last one of a residual block is its shortcut, if in != out */
};
struct vae_layers {
    struct vae_layer *list;
    size_t n;
};

/* In 16 bits, sums between blocks that convolutions read are divided by VAE_DIVISOR, so that they may be as large as
 * 65504 times that.  The weights of a convolution whose result is not divided make up for it; where it is, the bias is
 * divided, too. */
enum { VAE_DIVISOR = 16 };
enum vae_factor { VAE_AS_IT_IS, VAE_MULTIPLIED, VAE_DIVIDED };

/* How a parameter lies in a file. */
struct vae_tensor {
    const char *diffusers; /* its name; the official one is the parameter's */
    int rank;
    uint64_t shape[5];
    size_t taps, channels, copies;
    enum vae_factor factor;
};
struct vae_table {
    struct params params;
    struct vae_tensor *tensors; /* of each parameter */
    size_t n_tensors;
    struct vae_layers encoder, decoder; /* n 0: not there */
};
void vae_table_make(struct vae_table *t, const struct vae_info *i, bool encoder, bool decoder);
/* The channels that the encoder's input has on the device: those of the model twice, and some zeros. */
size_t vae_input_channels(const struct vae_info *i);
size_t vae_patch(
    const struct vae_info *i); /* pixels for each place of the largest activation, in height and width */

/* Pinned memory through which chunks come and go.  It takes long to get, so that it is kept from clip to clip. */
enum { VAE_SLOTS = 2 };
struct vae_slot {
    struct gpu_staging in, out;
    size_t in_bytes, out_bytes;
    struct gpu_event *done;
};

struct vae {
    struct nn *nn;
    enum gpu_storage storage; /* f16 or f32; nn has it while ops are queued */
    struct vae_slot slots[VAE_SLOTS];
    struct gpu_stream *until; /* to wait for a slot alone */
    struct vae_info info;
    struct vae_table table;
    struct weights weights;
    char path[256]; /* for messages; may be cut */
    bool repair;    /* what is not finite becomes 0, and is counted */
    uint64_t repaired;
};

/* Gives nn the format of the VAE, and returns its own, which it must get back. */
enum gpu_storage vae_enter(const struct vae *v);
/* What 16-bit sums are multiplied by; 1 in f32. */
float vae_shrink(const struct vae *v);

int vae_slots_open(struct vae *v, size_t in_bytes, size_t out_bytes, struct cairn_error *err);
void vae_slots_close(struct vae *v);

/* ---- a pass ---- */

/* Memory for activations: one block, in which they follow each other as they live and die. */
struct vae_memory {
    char *base; /* NULL: only the size is needed */
    size_t most;
    struct vae_span {
        size_t at, bytes;
    } used[24]; /* in order */
    size_t n;
};
size_t vae_memory_add(struct vae_memory *m, size_t bytes);
void vae_memory_drop(struct vae_memory *m, size_t at);

/* The last frames of what a convolution has seen of a clip. */
struct vae_past {
    size_t at, frames; /* of the block of all of them; how many frames there are so far */
};
struct vae_stream {
    struct vae_past past[VAE_MOST_CONVS];
    size_t bytes; /* of all */
    char *base;   /* NULL: only the size is needed */
};

/* Sums run from block to block in f32 whatever the storage (`wide`): rounded after each block, they would be most of the
 * error.  What convolutions read has the storage format: norms of rows, and sums divided by VAE_DIVISOR.  Pixels and
 * latents, the input of everything, are read as two numbers, rounded and the rest of it, by channels that have the same
 * weights. */
struct vae_activation {
    size_t at;
    size_t frames, height, width, channels;
    bool wide;
};
struct vae_pass {
    const struct vae *v;
    struct vae_memory *memory;
    struct vae_stream *stream;
    bool dry;         /* launch nothing */
    bool first, last; /* chunk of the clip */
    size_t convs;     /* so far */
    size_t work;      /* bytes that convolutions need besides */
    size_t packed;    /* and matmuls on the CPU */
};
void *vae_at(const struct vae_pass *p, const struct vae_activation *x);
/* Frees x, and makes the output.  *x becomes it. */
int vae_run_layers(struct vae_pass *p, const struct vae_layers *layers, struct vae_activation *x,
                   struct cairn_error *err);
struct vae_activation vae_new(struct vae_pass *p, size_t frames, size_t height, size_t width,
                              size_t channels);
void vae_drop(struct vae_pass *p, const struct vae_activation *x);
size_t vae_numbers(const struct vae_activation *x);

/* ---- ops ---- */

int vae_pixels_pack(struct nn *nn, void *x, const float *pixels, const struct vae_activation *shape,
                    size_t patch, struct cairn_error *err);
int vae_pixels_unpack(struct nn *nn, float *pixels, const float *x, const struct vae_activation *shape,
                      size_t patch, struct cairn_error *err);
struct vae_shortcut { /* of f32 */
    void *y;          /* added to */
    const void *x;
    const struct vae_activation *shape; /* of y */
    size_t in, by_time, by_space, lead;
    bool up;
};
int vae_shortcut(struct nn *nn, const struct vae_shortcut *s, struct cairn_error *err);
/* softmax(scale x) of f32 rows in place, and then times `factor` in the storage format; in f32 the factor is 1. */
struct vae_softmax {
    void *y;
    float *x;
    size_t rows, columns;
    float scale, factor;
};
int vae_softmax(struct nn *nn, const struct vae_softmax *s, struct cairn_error *err);
/* y[row] = x[row] rounded, and the rest of it. */
int vae_split(struct nn *nn, void *y, const float *x, size_t rows, size_t channels, struct cairn_error *err);
/* y += x, both f32. */
int vae_add(struct nn *nn, float *y, const float *x, size_t n, struct cairn_error *err);
/* y = factor x. */
int vae_narrow(struct nn *nn, void *y, const float *x, size_t n, float factor, struct cairn_error *err);
int vae_widen(struct nn *nn, float *y, const void *x, size_t n, float factor, struct cairn_error *err);
/* y[f][half][row] = x[f][row][half]: frames whose channels hold two frames each. */
int vae_split_frames(struct nn *nn, void *y, const void *x, size_t frames, size_t rows, size_t channels,
                     struct cairn_error *err);

#endif
