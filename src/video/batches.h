/* SPDX-License-Identifier: Apache-2.0
 * The order of training: which item is sample k of a step.
 *
 * A batch has items of one latent size (frames, height, width) only, all or none of them with a clean first
 * frame.  In each epoch every size has as many
 * batches as its items fill; items are shuffled within their size, then the batches of all sizes.  Where the
 * last batch of a size is not full, it goes on with the first items of the same shuffle, so that every batch
 * has the same number of samples: an epoch uses every item once, and up to one batch per size twice or, where
 * a size has fewer items than a batch, more often.
 *
 * Everything is a function of (seed, items, batch, step): nothing depends on earlier calls, and a step may be
 * split into micro-batches at any place within a batch.  Any number of threads may ask. */
#ifndef CAIRN_VIDEO_BATCHES_H
#define CAIRN_VIDEO_BATCHES_H

#include "video/cache.h"

struct batches;

struct batches_options {
    const struct video_cache *cache;
    const size_t *items; /* indices of the items to use; copied */
    size_t n_items;
    size_t batch; /* samples of a batch */
    size_t each;  /* batches of a step (gradient accumulation); they may differ in size */
    uint64_t seed;
};

struct batches_sample {
    size_t item; /* index in the cache */
    uint64_t epoch;
    uint64_t position; /* in the epoch, below batches_per_epoch() × batch; flow_time.h stratifies by it */
};

int batches_open(struct batches **out, const struct batches_options *o, struct cairn_error *err);
void batches_close(struct batches *b);
void batches_cleanup(struct batches **b); /* for CLEANUP */

uint64_t batches_per_epoch(const struct batches *b);
size_t
batches_sizes(const struct batches *b); /* different latent sizes, with and without a clean first frame */
/* Sample k, below batch × each, of a step; samples of a batch follow one another. */
struct batches_sample batches_at(const struct batches *b, uint64_t step, size_t k);

#endif
