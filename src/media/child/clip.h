/* SPDX-License-Identifier: Apache-2.0
 * Clips, by FFmpeg's libraries. */
#ifndef CAIRN_MEDIA_CHILD_CLIP_H
#define CAIRN_MEDIA_CHILD_CLIP_H

#include "media/child/image.h"

struct clip_source {
    int fd;
    uint64_t most_pixels;
    unsigned threads;
    void (*alive)(void); /* called for every frame or packet */
};

/* Fills width, height (upright), frames, fps, start_s, flags, bits, orientation, codec, colour. */
int clip_probe(const struct clip_source *s, struct wire_info *out, struct cairn_error *err);

/* Decodes the frames with these ascending numbers.  The image that `take` gets is upright. */
typedef int clip_take(void *ctx, uint64_t frame, const struct image *im, struct cairn_error *err);
int clip_read(const struct clip_source *s, const uint64_t *frames, size_t n, bool alpha, clip_take *take,
              void *ctx, struct cairn_error *err);

/* "libx264", …; NULL: no encoder. */
const char *clip_encoder(void);
const char *clip_library(void);

#endif
