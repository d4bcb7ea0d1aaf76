/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/exif.h"
#include "media/child/stills.h"

#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>

static void find_chunks(const WebPData *data, struct image *im)
{
    WebPDemuxer *d = WebPDemux(data);
    WebPChunkIterator chunk;
    if (!d)
        return;
    if (WebPDemuxGetChunk(d, "EXIF", 1, &chunk)) {
        im->orientation = exif_orientation(chunk.chunk.bytes, chunk.chunk.size);
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    if (WebPDemuxGetChunk(d, "ICCP", 1, &chunk)) {
        icc_note(chunk.chunk.bytes, chunk.chunk.size, im->colour);
        WebPDemuxReleaseChunkIterator(&chunk);
    }
    WebPDemuxDelete(d);
}

static void animation_end(WebPAnimDecoder **d)
{
    WebPAnimDecoderDelete(*d);
}

static int read_first_frame(const WebPData *data, struct image *im, struct cairn_error *err)
{
    WebPAnimDecoderOptions options;
    uint8_t *canvas;
    int time;
    WebPAnimInfo info;
    if (!WebPAnimDecoderOptionsInit(&options))
        return cairn_fail(err, CAIRN_ELACK, "libwebp is older than cairn-media was built for");
    CLEANUP(animation_end) WebPAnimDecoder *d = WebPAnimDecoderNew(data, &options);
    if (!d || !WebPAnimDecoderGetInfo(d, &info) || info.canvas_width != im->width ||
        info.canvas_height != im->height || !WebPAnimDecoderGetNext(d, &canvas, &time))
        return cairn_fail(err, CAIRN_EFORMAT, "damaged WebP animation");
    memcpy(im->at, canvas, im->width * im->height * 4);
    return 0;
}

int webp_read(const struct image_source *s, struct image *out, struct cairn_error *err)
{
    WebPBitstreamFeatures f;
    VP8StatusCode status = WebPGetFeatures(s->bytes, s->n, &f);
    if (status != VP8_STATUS_OK)
        return cairn_fail(err, CAIRN_EFORMAT, "damaged WebP file%s",
                          status == VP8_STATUS_NOT_ENOUGH_DATA ? ": it ends early" : "");
    const WebPData data = { s->bytes, s->n };
    out->width = (size_t)f.width;
    out->height = (size_t)f.height;
    out->bits = 8;
    out->has_alpha = f.has_alpha;
    out->channels = f.has_alpha || f.has_animation ? 4 : 3;
    if (image_check_size(out, s, err))
        return -1;
    find_chunks(&data, out);
    if (s->header_only)
        return 0;
    if (image_allocate(out, err))
        return -1;
    if (f.has_animation)
        return read_first_frame(&data, out, err);
    size_t row = out->width * (size_t)out->channels;
    uint8_t *done = (out->channels == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto)(
        s->bytes, s->n, out->at, row * out->height, (int)row);
    return done ? 0 : cairn_fail(err, CAIRN_EFORMAT, "damaged WebP file");
}
