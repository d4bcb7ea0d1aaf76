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

/* Writes MP4 to an open, empty file. */
struct clip_out;
int clip_out_open(struct clip_out **out, int fd, const struct wire_write *w, unsigned threads,
                  struct cairn_error *err);
int clip_out_add(struct clip_out *c, const uint8_t *rgb, struct cairn_error *err);
int clip_out_finish(struct clip_out *c, struct cairn_error *err); /* then close it */
void clip_out_close(struct clip_out *c);                          /* accepts NULL */

/* "libx264", …; NULL: no encoder. */
const char *clip_encoder(void);
const char *clip_library(void);

#endif
