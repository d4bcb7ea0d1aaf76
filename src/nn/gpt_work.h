/* SPDX-License-Identifier: Apache-2.0
 * Passes of a GPT over batches, and their workspace: planned ahead, allocated once.
 *
 * Forward and backward are queued, not waited for; gpt_loss waits.  The same weights, batch, seed and
 * device give the same bits.  A workspace belongs to its model's device and thread. */
#ifndef CAIRN_NN_GPT_WORK_H
#define CAIRN_NN_GPT_WORK_H

#include "nn/gpt.h"

struct gpt_work;
struct gpt_work_options {
    size_t samples, tokens;
    size_t slots;   /* batches held at once: the micro-batches of a step; 0 counts as 1 */
    bool train;     /* for the backward pass too */
    bool recompute; /* gradient checkpointing: keep the inputs of blocks, and compute the rest again */
};
/* Device memory of a workspace in bytes; and those that all workspaces of a device share: partial sums, and
 * on the CPU packed operands of matmuls and attention. */
size_t gpt_work_bytes(const struct gpt *m, const struct gpt_work_options *o);
size_t gpt_work_sums_bytes(const struct gpt *m, const struct gpt_work_options *o);
size_t gpt_work_packed_bytes(const struct gpt *m, const struct gpt_work_options *o);
int gpt_work_open(struct gpt *m, const struct gpt_work_options *o, struct gpt_work **out,
                  struct cairn_error *err);
void gpt_work_close(struct gpt_work *r);

/* samples × tokens ids, and targets (-1: no loss there), for a slot.  They are copied. */
int gpt_put(struct gpt_work *r, size_t slot, const int *ids, const int *targets, struct cairn_error *err);

struct gpt_pass {
    size_t slot;
    float scale;           /* of the loss's gradient: the loss scale / all targets of the step */
    float smoothing;       /* of the labels */
    uint64_t seed, stream; /* of dropout; each pass has a stream of its own */
    bool learn;            /* with dropout */
};
/* Forward; and backward where `grads` is given, which adds to it. */
int gpt_run(struct gpt_work *r, const struct gpt_pass *p, const struct weights *grads,
            struct cairn_error *err);
/* Waits.  The sum of the losses of a slot's targets, and how many there are. */
int gpt_loss(struct gpt_work *r, size_t slot, double *sum, size_t *targets, struct cairn_error *err);

/* Goes over `tokens` ids that follow `past` ones given before, and returns the scores of the next token,
 * `vocab` values. For a workspace of one sample, without train and recompute. */
int gpt_next(struct gpt_work *r, const int *ids, size_t tokens, size_t past, float *scores,
             struct cairn_error *err);

/* For tests, after gpt_run without gradients: the scores of every token; and the output of a block, 0 being
 * the input of the first. */
int gpt_scores(struct gpt_work *r, float *scores, struct cairn_error *err);
int gpt_between(struct gpt_work *r, size_t block, bool before_mlp, float *out, struct cairn_error *err);

#endif
