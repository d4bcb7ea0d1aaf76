/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/exif.h"
#include "media/child/stills.h"

#include <avif/avif.h>
#include <stdio.h>

static void decoder_end(avifDecoder **d)
{
    if (*d)
        avifDecoderDestroy(*d);
}

/* The file's own rotation (counter-clockwise quarters) and mirroring, which come in this order and count
 * instead of EXIF's. */
static int find_orientation(const avifImage *im)
{
    static const int turned[4] = { 1, 8, 3, 6 };
    static const int mirrored[2][4] = { { 4, 5, 2, 7 }, { 2, 7, 4, 5 } };
    unsigned angle = im->transformFlags & AVIF_TRANSFORM_IROT ? im->irot.angle & 3 : 0;
    if (!(im->transformFlags & AVIF_TRANSFORM_IMIR))
        return turned[angle];
#if AVIF_VERSION_MAJOR >= 1
    unsigned axis = im->imir.axis & 1;
#else
    unsigned axis = im->imir.mode & 1;
#endif
    return mirrored[axis][angle];
}

static void find_colour(const avifImage *im, struct image *out)
{
    static const struct {
        avifColorPrimaries primaries;
        const char *name;
    } names[] = {
        { AVIF_COLOR_PRIMARIES_BT2020, "BT.2020" },
        { AVIF_COLOR_PRIMARIES_SMPTE432, "Display P3" },
        { AVIF_COLOR_PRIMARIES_SMPTE431, "DCI-P3" },
    };
    if (im->icc.size)
        icc_note(im->icc.data, im->icc.size, out->colour);
    for (size_t i = 0; !im->icc.size && i < ARRAY_LEN(names); i++)
        if (im->colorPrimaries == names[i].primaries)
            snprintf(out->colour, sizeof(out->colour), "%s colours%s, not converted", names[i].name,
                     im->transferCharacteristics == AVIF_TRANSFER_CHARACTERISTICS_SMPTE2084 ||
                             im->transferCharacteristics == AVIF_TRANSFER_CHARACTERISTICS_HLG
                         ? " in HDR"
                         : "");
}

static int read_pixels(const avifImage *im, struct image *out, struct cairn_error *err)
{
    avifRGBImage rgb;
    avifRGBImageSetDefaults(&rgb, im);
    rgb.depth = 8;
    rgb.format = out->has_alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    out->width = im->width;
    out->height = im->height;
    out->channels = out->has_alpha ? 4 : 3;
    if (image_allocate(out, err))
        return -1;
    rgb.pixels = out->at;
    rgb.rowBytes = (uint32_t)(out->width * (size_t)out->channels);
    avifResult r = avifImageYUVToRGB(im, &rgb);
    return r == AVIF_RESULT_OK ? 0 : cairn_fail(err, CAIRN_EFORMAT, "AVIF: %s", avifResultToString(r));
}

int avif_read(const struct image_source *s, struct image *out, struct cairn_error *err)
{
    CLEANUP(decoder_end) avifDecoder *d = avifDecoderCreate();
    if (!d)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read an AVIF file");
    d->maxThreads = (int)s->threads;
    d->ignoreExif = d->ignoreXMP = AVIF_TRUE;
    d->strictFlags &= ~(avifStrictFlags)(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
    /* Its own limit comes before ours: that of the largest picture that fits. */
    d->imageSizeLimit = s->most_pixels < AVIF_DEFAULT_IMAGE_SIZE_LIMIT ? (uint32_t)s->most_pixels
                                                                       : AVIF_DEFAULT_IMAGE_SIZE_LIMIT;
    avifResult r = avifDecoderSetIOMemory(d, s->bytes, s->n);
    r = r == AVIF_RESULT_OK ? avifDecoderParse(d) : r;
    if (r != AVIF_RESULT_OK)
        return cairn_fail(err, CAIRN_EFORMAT, "AVIF: %s", avifResultToString(r));
    out->width = d->image->width;
    out->height = d->image->height;
    out->bits = (int)d->image->depth;
    out->has_alpha = d->alphaPresent;
    out->orientation = find_orientation(d->image);
    if (image_check_size(out, s, err))
        return -1;
    find_colour(d->image, out);
    if (s->header_only)
        return 0;
    r = avifDecoderNextImage(d);
    return r == AVIF_RESULT_OK ? read_pixels(d->image, out, err)
                               : cairn_fail(err, CAIRN_EFORMAT, "AVIF: %s", avifResultToString(r));
}
