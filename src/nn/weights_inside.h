/* SPDX-License-Identifier: Apache-2.0
 * What weights.c and weights_blocks.c share. */
#ifndef CAIRN_NN_WEIGHTS_INSIDE_H
#define CAIRN_NN_WEIGHTS_INSIDE_H

#include "nn/weights.h"

/* Blocks on the host, and the one that was asked for last. */
struct weights_offload {
    struct offload *offload;
    size_t piece;
    char *at; /* where its first number is on the device */
};

size_t weights_kind_size(enum gpu_storage storage, enum param_kind kind); /* the bytes of a number */

/* The memory of the blocks.  weights_close_memory also after a failure. */
int weights_open_memory(struct weights *w, const struct weights_options *o, struct cairn_error *err);
void weights_close_memory(struct weights *w);
/* Where a block is on the host; NULL: it is not there. */
void *weights_block_host(const struct weights *w, size_t piece);
/* Where it is on the device; of a streamed one, after weights_need. */
void *weights_block_device(const struct weights *w, size_t piece);

#endif
