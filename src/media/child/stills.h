/* SPDX-License-Identifier: Apache-2.0
 * The readers of still pictures, one for each format.  A library that was missing when cairn was built leaves
 * its row in the table without a reader. */
#ifndef CAIRN_MEDIA_CHILD_STILLS_H
#define CAIRN_MEDIA_CHILD_STILLS_H

#include "media/child/image.h"

typedef int still_reader(const struct image_source *s, struct image *out, struct cairn_error *err);
still_reader png_read, jpeg_read, webp_read, avif_read, bmp_read;

struct still_format {
    const char *name, *library;
    bool (*is)(const uint8_t *bytes, size_t n);
    still_reader *read; /* NULL: built without the library */
};
extern const struct still_format still_formats[];
extern const size_t still_formats_count;

/* The format that the file's first bytes show; NULL: none of them. */
const struct still_format *still_recognise(const uint8_t *bytes, size_t n);
/* Reads it; upright, pixels too unless only the header is asked for. */
int still_read(const struct still_format *f, const struct image_source *s, struct image *out,
               struct cairn_error *err);

#endif
