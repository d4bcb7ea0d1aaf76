/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/stills.h"

#include "media_config.h"
#include <string.h>

static bool is_png(const uint8_t *p, size_t n)
{
    return n >= 8 && !memcmp(p, "\x89PNG\r\n\x1a\n", 8);
}

static bool is_jpeg(const uint8_t *p, size_t n)
{
    return n >= 3 && !memcmp(p, "\xff\xd8\xff", 3);
}

static bool is_webp(const uint8_t *p, size_t n)
{
    return n >= 12 && !memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WEBP", 4);
}

/* A brand in the file type box; the brand of a general picture file may stand before it. */
static bool is_avif(const uint8_t *p, size_t n)
{
    if (n < 16 || memcmp(p + 4, "ftyp", 4))
        return false;
    size_t box = be32(p) < n ? be32(p) : n;
    for (size_t at = 8; at + 4 <= box; at += at == 8 ? 8 : 4)
        if (!memcmp(p + at, "avif", 4) || !memcmp(p + at, "avis", 4))
            return true;
    return false;
}

/* Two letters are little: the header's size must be one of those in use. */
static bool is_bmp(const uint8_t *p, size_t n)
{
    static const uint32_t sizes[] = { 12, 40, 52, 56, 64, 108, 124 };
    for (size_t i = 0; n >= 26 && p[0] == 'B' && p[1] == 'M' && i < ARRAY_LEN(sizes); i++)
        if (le32(p + 14) == sizes[i])
            return true;
    return false;
}

const struct still_format still_formats[] = {
    { "png", "libpng", is_png,
#ifdef HAVE_PNG
      png_read
#else
      NULL
#endif
    },
    { "jpeg", "libjpeg", is_jpeg,
#ifdef HAVE_JPEG
      jpeg_read
#else
      NULL
#endif
    },
    { "webp", "libwebp", is_webp,
#ifdef HAVE_WEBP
      webp_read
#else
      NULL
#endif
    },
    { "avif", "libavif", is_avif,
#ifdef HAVE_AVIF
      avif_read
#else
      NULL
#endif
    },
    { "bmp", "cairn's own", is_bmp, bmp_read },
};
const size_t still_formats_count = ARRAY_LEN(still_formats);

const struct still_format *still_recognise(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < still_formats_count; i++)
        if (still_formats[i].is(bytes, n))
            return &still_formats[i];
    return NULL;
}

int still_read(const struct still_format *f, const struct image_source *s, struct image *out,
               struct cairn_error *err)
{
    CLEANUP(image_release) struct image im = { .orientation = 1, .codec = f->name };
    if (!f->read) {
        cairn_fail(err, CAIRN_ELACK, "cairn-media was built without %s, which reads %s files", f->library,
                   f->name);
        return cairn_hint(err, "run scripts/setup, then build cairn again");
    }
    if (f->read(s, &im, err))
        return -1;
    if (image_orient(&im, err))
        return -1;
    *out = im;
    im.at = NULL;
    return 0;
}
