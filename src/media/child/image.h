/* SPDX-License-Identifier: Apache-2.0
 * A still picture or a frame while it is decoded: what a file says of it, and its pixels. */
#ifndef CAIRN_MEDIA_CHILD_IMAGE_H
#define CAIRN_MEDIA_CHILD_IMAGE_H

#include "base/error.h"
#include "media/protocol.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
    size_t width, height; /* as stored */
    int channels;         /* of `at`: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA */
    uint8_t *at;          /* rows without gaps; NULL: only the header was read */
    int bits, orientation;
    bool has_alpha;
    const char *codec;
    char colour[128]; /* a colour space other than sRGB, or empty */
};

/* A file in memory, and how to read it. */
struct image_source {
    const uint8_t *bytes;
    size_t n;
    bool header_only;
    uint64_t most_pixels;
    unsigned threads;
};

void image_release(struct image *im);
/* Is the size possible and within the limit? */
int image_check_size(const struct image *im, const struct image_source *s, struct cairn_error *err);
/* Allocates the pixels for the size and number of channels that are set. */
int image_allocate(struct image *im, struct cairn_error *err);
/* Turns the pixels upright, and the size with them. */
int image_orient(struct image *im, struct cairn_error *err);
/* Do these orientations exchange width and height? */
bool image_is_turned(int orientation);
/* The wanted channels without gaps, as PIL's convert() gives them.  out has 3 or 1 bytes a pixel. */
void image_plane(const struct image *im, enum wire_plane plane, uint8_t *out);

/* Big-endian and little-endian numbers in files. */
static inline uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
static inline uint32_t be16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}
static inline uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}
static inline uint32_t le16(const uint8_t *p)
{
    return (uint32_t)p[1] << 8 | p[0];
}

#endif
