/* SPDX-License-Identifier: Apache-2.0
 * Writes caches as musubi-tuner does: the same names, tensors and metadata, so that its trainer and cairn's read them.
 *
 * Every file is read back before it gets its name.  Values that are not finite, and latents that are the same number
 * everywhere, are refused: such a cache would train a model on nothing.  One more metadata key, "cairn_made_from",
 * says what the file was made of, so that a later run can tell whether it is still current. */
#ifndef CAIRN_VIDEO_CACHE_WRITE_H
#define CAIRN_VIDEO_CACHE_WRITE_H

#include "base/error.h"
#include "tensor/dtype.h"
#include "video/cache_name.h"

struct cache_latents {
    struct cache_of of;
    size_t channels, frames, height, width; /* of the latents */
    const float *values;                    /* [channels][frames][height][width] */
    const float *image;                     /* [image_channels][frames][height][width]; NULL: none */
    size_t image_channels;
    enum dtype dtype; /* bf16, f16 or f32 */
    const char *made_from;
};
int cache_write_latents(const char *dir, const struct cache_latents *l, struct cairn_error *err);

struct cache_text {
    const char *stem, *caption;
    size_t rows, columns;
    const float *values; /* rows × columns */
    enum dtype dtype;
    const char *made_from;
};
int cache_write_text(const char *dir, const struct cache_text *t, struct cairn_error *err);

/* The "cairn_made_from" of a file, or "" if another program wrote it; NULL: there is no such file, or it is damaged. */
const char *cache_made_from(struct arena *a, const char *path);
/* Whether the metadata say that it is a cache of Wan; whoever wrote it. */
bool cache_is_wan(const char *path);
/* Whether a cache of text is of this caption, and one of latents has this size; whoever wrote it. */
bool cache_has_caption(const char *path, const char *caption);
bool cache_has_size(const char *path, size_t channels, size_t frames, size_t height, size_t width);

#endif
