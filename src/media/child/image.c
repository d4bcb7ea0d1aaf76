/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/image.h"

#include <stdlib.h>
#include <string.h>

void image_release(struct image *im)
{
    free(im->at);
    *im = (struct image){ 0 };
}

int image_check_size(const struct image *im, const struct image_source *s, struct cairn_error *err)
{
    uint64_t pixels;
    if (!im->width || !im->height)
        return cairn_fail(err, CAIRN_EFORMAT, "it has %zu x %zu pixels", im->width, im->height);
    if (!__builtin_mul_overflow((uint64_t)im->width, (uint64_t)im->height, &pixels) &&
        pixels <= s->most_pixels)
        return 0;
    cairn_fail(err, CAIRN_EFORMAT, "%zu x %zu pixels are more than the limit of %.0f million", im->width,
               im->height, (double)s->most_pixels / 1e6);
    return cairn_hint(err, "make it smaller with another program first");
}

int image_allocate(struct image *im, struct cairn_error *err)
{
    size_t bytes;
    if (__builtin_mul_overflow(im->width, im->height, &bytes) ||
        __builtin_mul_overflow(bytes, (size_t)im->channels, &bytes) || !(im->at = malloc(bytes)))
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu x %zu pixels", im->width, im->height);
    return 0;
}

bool image_is_turned(int orientation)
{
    return orientation >= 5 && orientation <= 8;
}

/* Copies one pixel after the other along a path through the stored picture. */
static void copy_pixels(const struct image *im, struct image *out, ptrdiff_t begin, ptrdiff_t step_x,
                        ptrdiff_t step_y)
{
    size_t channels = (size_t)im->channels;
    uint8_t *to = out->at;
    for (size_t y = 0; y < out->height; y++) {
        const uint8_t *from = im->at + begin + (ptrdiff_t)y * step_y;
        for (size_t x = 0; x < out->width; x++, from += step_x, to += channels)
            memcpy(to, from, channels);
    }
}

int image_orient(struct image *im, struct cairn_error *err)
{
    if (im->orientation < 2 || im->orientation > 8)
        return 0;
    struct image out = *im;
    if (image_is_turned(im->orientation)) {
        out.width = im->height;
        out.height = im->width;
    }
    out.at = NULL;
    if (im->at) {
        if (image_allocate(&out, err))
            return -1;
        ptrdiff_t x = im->channels, y = x * (ptrdiff_t)im->width;
        ptrdiff_t right = x * (ptrdiff_t)(im->width - 1), bottom = y * (ptrdiff_t)(im->height - 1);
        /* The place of the upright picture's first pixel in the stored one, and the steps to its neighbours
         * to the right and below. */
        const struct {
            ptrdiff_t begin, step_x, step_y;
        } paths[] = {
            [2] = { right, -x, y }, [3] = { right + bottom, -x, -y }, [4] = { bottom, x, -y },
            [5] = { 0, y, x },      [6] = { bottom, -y, x },          [7] = { right + bottom, -y, -x },
            [8] = { right, y, -x },
        };
        copy_pixels(im, &out, paths[im->orientation].begin, paths[im->orientation].step_x,
                    paths[im->orientation].step_y);
        free(im->at);
    }
    *im = out;
    return 0;
}

/* PIL's weights. */
static uint8_t luma(const uint8_t *p)
{
    return (uint8_t)((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16);
}

void image_plane(const struct image *im, enum wire_plane plane, uint8_t *out)
{
    size_t n = im->width * im->height, step = (size_t)im->channels;
    bool colour = im->channels >= 3, alpha = im->channels == 2 || im->channels == 4;
    const uint8_t *p = im->at;
    if ((plane == WIRE_RGB && im->channels == 3) || (plane == WIRE_GREY && im->channels == 1)) {
        memcpy(out, p, n * step);
        return;
    }
    for (size_t i = 0; i < n; i++, p += step) {
        if (plane == WIRE_ALPHA)
            *out++ = alpha ? p[step - 1] : 255;
        else if (plane == WIRE_GREY)
            *out++ = colour ? luma(p) : p[0];
        else
            for (size_t c = 0; c < 3; c++)
                *out++ = p[colour ? c : 0];
    }
}
