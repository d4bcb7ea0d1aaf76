/* SPDX-License-Identifier: Apache-2.0
 * Decodes the frames of items on other threads before they are asked for.
 *
 * Each thread has its own cairn-media.  A few items are held at a time, at most `bytes` of pixels unless one item alone
 * has more: a clip that large is not decoded ahead, but read piece by piece by the caller (frames_ahead_read). */
#ifndef CAIRN_ENCODE_FRAMES_AHEAD_H
#define CAIRN_ENCODE_FRAMES_AHEAD_H

#include "media/dataset.h"

struct frames_ahead;

struct frames_ahead_options {
    const struct dataset_item *const *items; /* in the order in which they are asked for */
    size_t n;
    int threads;    /* 0: one for each CPU, at most 8 */
    uint64_t bytes; /* 0: 1 GiB */
};

int frames_ahead_open(struct frames_ahead **out, const struct frames_ahead_options *o,
                      struct cairn_error *err);
void frames_ahead_close(struct frames_ahead *f); /* accepts NULL */

/* Waits for an item; items are asked for in order, each once, and what was kept of the one before is freed.  Fails if it
 * cannot be decoded. */
int frames_ahead_next(struct frames_ahead *f, size_t item, struct cairn_error *err);
/* Frames of that item as RGB in -1 … 1, [n][height][width][3]. */
int frames_ahead_read(struct frames_ahead *f, size_t first, size_t n, float *out, struct cairn_error *err);

#endif
