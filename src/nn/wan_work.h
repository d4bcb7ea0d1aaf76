/* SPDX-License-Identifier: Apache-2.0
 * Batches of a Wan model.  Workspaces are opened and run by model_ops; work_options.extent is in tokens. */
#ifndef CAIRN_NN_WAN_WORK_H
#define CAIRN_NN_WAN_WORK_H

#include "nn/wan.h"

struct wan_size {
    size_t frames, height, width; /* of a latent; height and width are even */
};
size_t wan_tokens(struct wan_size s);

/* Samples of one size.  Everything is copied. */
struct wan_batch {
    size_t samples;
    size_t expert; /* base */
    struct wan_size size;
    size_t clean_frames;  /* the first ones have no noise: their time is 0, and they have no loss */
    const float *x;       /* sample, channel (shape.in of them), frame, row, column */
    const float *target;  /* the same with shape.out channels: noise - latent; NULL: no loss is wanted */
    const float *times;   /* of each sample, 0 to 1000 */
    const float *weights; /* of each sample's loss; NULL: 1 */
    /* text_rows × text_width of each sample, zeros behind the caption; and clip_rows × clip_width, where the model takes
     * it.  NULL: as put into the slot before. */
    const float *text, *clip;
};
int wan_put(struct work *w, size_t slot, const struct wan_batch *b, struct cairn_error *err);

/* After a pass without gradients: what the model says, laid out as wan_batch.target.  Waits. */
int wan_output(struct work *w, size_t slot, float *into, struct cairn_error *err);

#endif
