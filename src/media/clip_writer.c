/* SPDX-License-Identifier: Apache-2.0 */
#include "media/clip_writer.h"

#include "base/file.h"
#include "media/helper.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct clip_writer {
    struct helper helper;
    struct file_out file;
    char *path;
    struct clip_format format;
    uint64_t frames;
};

void clip_writer_close(struct clip_writer *w)
{
    if (!w)
        return;
    helper_stop(&w->helper);
    file_out_close(&w->file);
    free(w->path);
    free(w);
}

static void close_at(struct clip_writer **w)
{
    clip_writer_close(*w);
}

static int ask_done(struct clip_writer *w, const struct wire_message *m, struct cairn_error *err)
{
    struct wire_head head;
    if (helper_ask(&w->helper, w->path, m, err) || helper_answer(&w->helper, w->path, &head, err))
        return -1;
    return head.kind == WIRE_DONE && !head.size ? 0 : helper_confused(&w->helper, w->path, err);
}

int clip_writer_open(struct clip_writer **out, const struct media_options *options, const char *path,
                     const struct clip_format *format, struct cairn_error *err)
{
    if (!format->width || !format->height || !isfinite(format->fps) || format->fps < 0.01 ||
        format->fps > 1000)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: a clip of %zu x %zu pixels at %g frames per second", path,
                          format->width, format->height, format->fps);
    CLEANUP(close_at) struct clip_writer *w = calloc(1, sizeof(*w));
    if (!w || !(w->path = strdup(path)))
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to write %s", path);
    w->file = (struct file_out)FILE_OUT_NONE;
    w->helper.fd = -1;
    w->format = *format;
    if (helper_init(&w->helper, options, true, err) || file_out_open(&w->file, path, 0, format->replace, err))
        return -1;
    static const uint32_t formats[] = {
        [CLIP_MP4] = WIRE_MP4, [CLIP_JPEG] = WIRE_JPEG, [CLIP_WEBP] = WIRE_WEBP
    };
    const struct wire_write size = { format->width, format->height, format->fps, formats[format->kind], 0 };
    if (ask_done(w, &(struct wire_message){ WIRE_WRITE, &size, NULL, sizeof(size), 0, w->file.file.fd }, err))
        return -1;
    *out = TAKE(w);
    return 0;
}

int clip_writer_add(struct clip_writer *w, const struct picture *p, struct cairn_error *err)
{
    if (p->channels != 3 || p->width != w->format.width || p->height != w->format.height)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: a frame of %zu x %zu pixels in a clip of %zu x %zu",
                          w->path, p->width, p->height, w->format.width, w->format.height);
    const struct wire_frame f = { w->frames++, p->width, p->height, 3, 0 };
    return ask_done(w, &(struct wire_message){ WIRE_ADD, &f, p->at, sizeof(f), picture_bytes(p), -1 }, err);
}

int clip_writer_commit(struct clip_writer *w, struct cairn_error *err)
{
    if (ask_done(w, &(struct wire_message){ .kind = WIRE_FINISH, .pass = -1 }, err))
        return -1;
    return file_out_commit(&w->file, err);
}
