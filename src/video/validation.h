/* SPDX-License-Identifier: Apache-2.0
 * Items that are held out for validation.
 *
 * The hash of a stem decides, whatever the folder: all crops of a video are on the same side, and an item
 * stays on its side when others are added. */
#ifndef CAIRN_VIDEO_VALIDATION_H
#define CAIRN_VIDEO_VALIDATION_H

#include "base/arena.h"
#include "video/cache.h"

/* Indices of items, in the cache's order. */
struct validation_split {
    size_t *train, *val;
    size_t n_train, n_val;
};

/* Holds out this share of the stems: at least one if it is above 0, and at least one remains for training; with a
 * single stem nothing is held out.  Memory is the arena's. */
void validation_split_make(const struct video_cache *c, double share, struct arena *a,
                           struct validation_split *out);

#endif
