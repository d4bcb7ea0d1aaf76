/* SPDX-License-Identifier: Apache-2.0
 * Buckets: the few sizes that pictures and clips of a dataset are scaled to, so that those of one size can
 * share a batch.  The rules are those of musubi-tuner and of ai-toolkit. */
#ifndef CAIRN_MEDIA_BUCKET_H
#define CAIRN_MEDIA_BUCKET_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct bucket_size {
    size_t width, height;
};

/* musubi-tuner: sizes of about one area, from 1:4 to 4:1. */
struct bucket_set {
    struct bucket_size resolution;
    size_t step; /* widths and heights are multiples of it */
    bool no_upscale;
    struct bucket_size *size; /* ascending */
    size_t n;
};

/* enable false: the resolution is the only size, and no_upscale is ignored.  Fails if the resolution is
 * smaller than a step. */
int bucket_set_init(struct bucket_set *b, struct bucket_size resolution, size_t step, bool enable,
                    bool no_upscale, struct arena *a, struct cairn_error *err);
/* The size whose aspect ratio is nearest; with no_upscale a small picture keeps its own size, rounded down,
 * which may be 0. */
struct bucket_size bucket_set_choose(const struct bucket_set *b, size_t width, size_t height);

/* ai-toolkit: the size nearest to the picture's own, or to `side` squared pixels if it has more. */
struct bucket_size bucket_of_area(size_t width, size_t height, size_t side, size_t step);

#endif
