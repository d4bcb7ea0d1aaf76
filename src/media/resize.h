/* SPDX-License-Identifier: Apache-2.0
 * Scales and crops a picture to the size that a model is trained with, as musubi-tuner does: Pillow's Lanczos
 * filter where the picture grows, OpenCV's INTER_AREA where it shrinks, then the centre.
 *
 * Both are computed as those libraries compute them, in 8-bit fixed point and in float, so that the pixels
 * are theirs.  Only the pixels that remain after the crop are computed.  Any number of threads may call. */
#ifndef CAIRN_MEDIA_RESIZE_H
#define CAIRN_MEDIA_RESIZE_H

#include "media/picture.h"
#include <stdbool.h>

struct picture_rect {
    size_t x, y, width, height;
};

/* How a picture of one size becomes one of another. */
struct picture_fit {
    size_t from_width, from_height;
    size_t scaled_width, scaled_height; /* before the crop; at least as large as what remains */
    bool grows;                         /* Lanczos, else area */
    struct picture_rect window;         /* what remains, in the scaled picture */
    struct picture_rect crop;           /* the same in pixels of the source, rounded */
};

/* scale = max(width / from_width, height / from_height).  Fails if a size is 0 or too large for an int. */
int picture_fit_plan(struct picture_fit *out, size_t from_width, size_t from_height, size_t width,
                     size_t height, struct cairn_error *err);
/* Creates out, with the channels of `in`, which has the size that was planned for. */
int picture_fit(const struct picture *in, const struct picture_fit *fit, struct picture *out,
                struct cairn_error *err);

void picture_flip_x(struct picture *p); /* left becomes right */
void picture_flip_y(struct picture *p);

#endif
