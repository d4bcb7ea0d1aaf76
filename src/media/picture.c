/* SPDX-License-Identifier: Apache-2.0 */
#include "media/picture.h"
#include <stdlib.h>

size_t picture_bytes(const struct picture *p)
{
    return p->width * p->height * (size_t)p->channels;
}

int picture_new(struct picture *out, size_t width, size_t height, int channels, struct cairn_error *err)
{
    *out = (struct picture){ .width = width, .height = height, .channels = channels };
    size_t row = 0, bytes = 0;
    if (!width || !height || __builtin_mul_overflow(width, (size_t)channels, &row) ||
        __builtin_mul_overflow(row, height, &bytes))
        return cairn_fail(err, CAIRN_EFORMAT, "a picture of %zu x %zu pixels is not possible", width, height);
    out->at = malloc(bytes);
    return out->at
               ? 0
               : cairn_fail(err, CAIRN_ENOMEM, "no memory for a picture of %zu x %zu pixels", width, height);
}

void picture_free(struct picture *p)
{
    free(p->at);
    *p = (struct picture){ 0 };
}
