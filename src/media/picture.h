/* SPDX-License-Identifier: Apache-2.0
 * A picture in memory: rows of 8-bit values, RGB or one channel, without gaps. */
#ifndef CAIRN_MEDIA_PICTURE_H
#define CAIRN_MEDIA_PICTURE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

struct picture {
    size_t width, height;
    int channels; /* 1 or 3 */
    uint8_t *at;  /* owned */
};

/* Its values are not set.  Fails for a size of 0 and for one that is too large to address. */
int picture_new(struct picture *out, size_t width, size_t height, int channels, struct cairn_error *err);
void picture_free(struct picture *p); /* for CLEANUP; leaves an empty picture */
size_t picture_bytes(const struct picture *p);

#endif
