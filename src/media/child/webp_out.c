/* SPDX-License-Identifier: Apache-2.0
 * WebP files, animated where there are several frames, by libwebp. */
#include "media/child/out.h"

#include "base/cleanup.h"
#include <stdlib.h>
#include <string.h>

#include <webp/encode.h>
#include <webp/mux.h>

enum { QUALITY = 90 };

struct webp_file {
    struct out out;
    int fd;
    struct wire_write size;
    size_t frames;
    WebPAnimEncoder *encoder;
    WebPConfig config;
};

static void close_file(struct out *o)
{
    struct webp_file *w = (struct webp_file *)o;
    WebPAnimEncoderDelete(w->encoder);
    if (w->fd >= 0)
        fd_close(&w->fd);
    free(w);
}

static void close_at(struct webp_file **w)
{
    if (*w)
        close_file(&(*w)->out);
}

/* Milliseconds at which a frame begins. */
static int time_of(const struct webp_file *w, size_t frame)
{
    return (int)(1000.0 * (double)frame / w->size.fps + 0.5);
}

static int failed(struct webp_file *w, const char *what, struct cairn_error *err)
{
    const char *why = w->encoder ? WebPAnimEncoderGetError(w->encoder) : "";
    return cairn_fail(err, CAIRN_EIO, "%s: %s", what, why && *why ? why : "libwebp failed");
}

static int add(struct out *o, const uint8_t *rgb, struct cairn_error *err)
{
    struct webp_file *w = (struct webp_file *)o;
    WebPPicture p;
    if (!WebPPictureInit(&p))
        return cairn_fail(err, CAIRN_ELACK, "libwebp is older than cairn-media was built for");
    p.width = (int)w->size.width;
    p.height = (int)w->size.height;
    p.use_argb = 1;
    int done = WebPPictureImportRGB(&p, rgb, 3 * p.width) &&
               WebPAnimEncoderAdd(w->encoder, &p, time_of(w, w->frames), &w->config);
    WebPPictureFree(&p);
    if (!done)
        return failed(w, "write a frame", err);
    w->frames++;
    return 0;
}

static int finish(struct out *o, struct cairn_error *err)
{
    struct webp_file *w = (struct webp_file *)o;
    WebPData bytes;
    WebPDataInit(&bytes);
    if (!w->frames)
        return cairn_fail(err, CAIRN_EUSAGE, "a clip without frames");
    int done = WebPAnimEncoderAdd(w->encoder, NULL, time_of(w, w->frames), NULL) &&
               WebPAnimEncoderAssemble(w->encoder, &bytes);
    int r = done ? out_write_all(w->fd, bytes.bytes, bytes.size, err) : failed(w, "write the file", err);
    WebPDataClear(&bytes);
    return r;
}

int webp_out(struct out **out, int fd, const struct wire_write *size, unsigned threads,
             struct cairn_error *err)
{
    static const struct out_ops ops = { add, finish, close_file };
    WebPAnimEncoderOptions options;
    if (!size->width || !size->height || size->width > WEBP_MAX_DIMENSION ||
        size->height > WEBP_MAX_DIMENSION || !(size->fps >= 0.01) || !(size->fps <= 1000))
        return cairn_fail(err, CAIRN_EFORMAT, "a WebP file of this size or rate cannot be written");
    CLEANUP(close_at) struct webp_file *w = calloc(1, sizeof(*w));
    if (!w)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to write a clip");
    w->fd = -1; /* belongs to the caller until all is open */
    w->out.ops = &ops;
    w->size = *size;
    if (!WebPAnimEncoderOptionsInit(&options) || !WebPConfigPreset(&w->config, WEBP_PRESET_PICTURE, QUALITY))
        return cairn_fail(err, CAIRN_ELACK, "libwebp is older than cairn-media was built for");
    w->config.thread_level = threads > 1;
    w->encoder = WebPAnimEncoderNew((int)size->width, (int)size->height, &options);
    if (!w->encoder)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to write a clip");
    w->fd = fd;
    *out = &w->out;
    w = NULL;
    return 0;
}
