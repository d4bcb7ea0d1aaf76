/* SPDX-License-Identifier: Apache-2.0
 * What a workspace is made of, for the files that know: wan_work.c plans and fills it, wan_pass.c goes
 * through it. */
#ifndef CAIRN_NN_WAN_INSIDE_H
#define CAIRN_NN_WAN_INSIDE_H

#include "gpu/save_ring.h"
#include "nn/wan_work.h"

extern const struct model_ops wan_model_ops; /* wan_model.c */

/* One softmax over keys of its own: self attention, to the caption, to the image. */
struct wan_attention {
    void *k_raw, *k, *v; /* k_raw: before its norm */
    void *o;
    float *k_rstd, *lse;
};

/* What a block computes, in the storage format; x1 and x2 are parts of the residual stream; statistics are
 * f32. */
struct wan_activations {
    void *norm1, *q_raw, *q, *x1;
    void *norm3, *cross_q_raw, *cross_q, *cross_o, *x2; /* cross_o: the sum where there are two softmaxes */
    void *norm2, *fc, *act;
    struct wan_attention self, text, image;
    float *mean[3], *rstd[3]; /* of norm1, norm3, norm2 */
    float *q_rstd, *cross_q_rstd;
};

/* A batch on the device. */
struct wan_slot {
    size_t samples, expert, tokens, clean_rows; /* clean_rows: tokens of the clean frames */
    struct wan_size size;
    void *x, *text, *clip;
    float *sinusoids; /* of each set of modulations */
    float *target;    /* in the order of the head's output: token, row and column in the patch, channel */
    float *parts;     /* of the loss */
    float *weights;   /* of each sample, on the host */
    bool has_target;
    char *staging;
};

struct wan_work {
    struct wan *m; /* first: struct work is one of these */
    struct work_options o;
    size_t rows;     /* of the largest batch */
    bool f32_stream; /* of residuals; else it has the storage format */
    void *memory;
    struct wan_slot *slots;
    float *weights; /* of all slots */
    struct gpu_staging staging, losses, rope_staging;
    float *rope_cos, *rope_sin;
    struct wan_size rope_size; /* whose table is there */
    /* Time: its embedding, what it adds to each block, and of one block or of the head the modulation
     * [part][set][column]. */
    float *time_inner, *time, *time_projected, *modulation;
    void *patches;                       /* scratch of the patch embedding */
    void *text_inner, *text;             /* the caption as keys and values see it */
    void *clip_norm, *clip_inner, *clip; /* and the image */
    float *clip_mean, *clip_rstd;
    void **x;                      /* the input of each block, and the output of the last */
    struct save_ring ring;         /* of the inputs, where the host saves them */
    struct wan_activations *saved; /* of each block; one for all where they are computed again */
    void *branch;                  /* what a block adds, before its gate */
    float *last_mean, *last_rstd;
    void *y; /* the head's output, then its gradient */
    /* for the backward pass: gradients; dx is one of the residual stream */
    void *dx, *d_narrow, *d_narrow2, *d_ffn;
    void *d_keys, *d_values, *d_keys_raw; /* of caption or image */
    float *delta;
    struct lora_scratch lora;
};

/* Rows that share a modulation, or that have one each `rows_per_set`. */
struct wan_segment {
    size_t first, rows, set, rows_per_set;
};
size_t wan_sets(const struct wan_slot *s);
size_t wan_segments(const struct wan_slot *s);
struct wan_segment wan_segment_at(const struct wan_slot *s, size_t i);

struct work_bytes wan_work_bytes(const struct model *m, const struct work_options *o);
int wan_work_open(struct model *m, const struct work_options *o, struct work **out, struct cairn_error *err);
void wan_work_close(struct work *w);
int wan_run(struct work *w, const struct model_pass *p, const struct weights *grads, struct cairn_error *err);
int wan_loss(struct work *w, size_t slot, double *sum, double *units, struct cairn_error *err);
/* Puts the table of rotary positions for this size onto the device. */
int wan_need_rope(struct wan_work *w, struct wan_size size, struct cairn_error *err);

#endif
