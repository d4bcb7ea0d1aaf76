/* SPDX-License-Identifier: Apache-2.0
 * What a workspace is made of, for the files that know: gpt_work.c plans it, gpt_pass.c goes through
 * it, and gpt_score.c makes scores and losses of it. */
#ifndef CAIRN_NN_GPT_INSIDE_H
#define CAIRN_NN_GPT_INSIDE_H

#include "nn/gpt_work.h"

extern const struct model_ops gpt_model_ops; /* gpt_model.c */

/* What a block computes, in the storage format; statistics are f32. */
struct activations {
    void *norm[2], *qkv, *attention, *middle, *fc, *up, *act;
    float *mean[2], *rstd[2], *lse;
};

/* A batch on the device: ids, targets, and which rows have which id (gpu/id_index.h). */
struct slot {
    int *ids, *targets, *list_ids, *list_first, *list_members;
    size_t lists, n_targets;
    int *staging; /* all five, one after the other, on the host */
    float *loss;  /* of each row */
};

struct gpt_work {
    struct gpt *m; /* first: struct work is one of these */
    struct gpt_work_options o;
    size_t rows;    /* samples * tokens */
    size_t at_once; /* rows of scores */
    void *memory;
    struct slot *slots;
    struct gpu_staging staging, losses_staging;
    float *losses; /* on the host, of all slots */
    /* the same lists for positions */
    int *position_ids, *position_first, *position_members;
    void **x;                  /* the input of each block, and the output of the last */
    struct activations *saved; /* of each block; one for all where none is needed again */
    void *last;                /* normed */
    float *last_mean, *last_rstd;
    void *scores;
    void *branch; /* what a block adds, where there is dropout */
    /* for the backward pass: gradients */
    void *dx, *d_narrow, *d_qkv, *d_wide, *d_wide2;
    float *delta;
    struct lora_scratch lora;
};

/* Copies ints to the device by way of *staging, which moves on. */
int gpt_send(struct gpt_work *r, int *to, int **staging, const int *from, size_t n, struct cairn_error *err);

/* A row of a tensor in the storage format. */
void *gpt_row_at(const struct gpt_work *r, void *p, size_t row, size_t columns);
/* An embedding table, or the head; they are never quantized, so that nothing is queued. */
void *gpt_table(const struct gpt *m, size_t index);
/* Queues the scores of `rows` tokens from `first`, into r->scores. */
int gpt_score(const struct gpt_work *r, size_t first, size_t rows, struct cairn_error *err);

/* A matrix in the storage format, of whose rows the first `columns` values are wanted.  Waits for them. */
struct gpt_result {
    const void *at;
    size_t rows, columns, stride;
};
int gpt_fetch(const struct gpt_work *r, struct gpt_result m, float *into, struct cairn_error *err);

#endif
