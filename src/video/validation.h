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

/* Holds out this share of the stems, or, if `items` is not 0, the stems of lowest hash until there are at
 * least as many items.  At least one stem is held out if anything is asked for, and at least one remains for
 * training: with a single stem nothing is held out.  Memory is the arena's. */
void validation_split_make(const struct video_cache *c, double share, size_t items, struct arena *a,
                           struct validation_split *out);

#endif
