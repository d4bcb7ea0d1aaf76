/* SPDX-License-Identifier: Apache-2.0 */
#include "encode/decode.h"

#include "base/str.h"
#include "media/clip_writer.h"
#include "media/png_write.h"
#include "nn/vae.h"
#include "video/item.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FPS_21 = 16, FPS_22 = 24 }; /* that the models were trained with */

struct decoder {
    struct decode_options o;
    struct encode_device device;
    struct vae *vae;
};

int decoder_open(struct decoder **out, const struct decode_options *o, struct cairn_error *err)
{
    struct decoder *d = calloc(1, sizeof(*d));
    if (!d)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a decoder");
    d->o = *o;
    if (encode_device_open(&d->device, &d->o.device, err)) {
        free(d);
        return -1;
    }
    *out = d;
    return 0;
}

void decoder_close(struct decoder *d)
{
    if (!d)
        return;
    vae_close(d->vae);
    encode_device_close(&d->device);
    free(d);
}

int decode_is_clip(const char *latents, bool *is_clip, struct cairn_error *err)
{
    struct video_item item = { .path = latents };
    if (video_item_open(&item, &(struct video_needs){ 0 }, err))
        return -1;
    *is_clip = item.frames > 1;
    return 0;
}

/* ---- frames ---- */

/* Decoded frames as 8-bit RGB. */
struct frames {
    const struct decode_sink *sink;
    struct picture frame;
};

static void frames_release(struct frames *f)
{
    picture_free(&f->frame);
}

static int write_frames(void *ctx, size_t first, size_t n, const float *rgb, struct cairn_error *err)
{
    struct frames *to = ctx;
    size_t values = picture_bytes(&to->frame);
    for (size_t f = 0; f < n; f++, rgb += values) {
        for (size_t i = 0; i < values; i++) {
            float v = rgb[i] < -1 ? -1 : rgb[i] > 1 ? 1 : rgb[i];
            to->frame.at[i] = (uint8_t)((v + 1) * 127.5f + 0.5f);
        }
        if (to->sink->frame(to->sink->ctx, first + f, &to->frame, err))
            return -1;
    }
    return 0;
}

/* ---- decoding ---- */

static int check_kind(const struct vae_info *v, const struct decode_clip *c, struct cairn_error *err)
{
    if (c->channels == v->channels)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s has %zu channels, but this VAE has %zu", c->name, c->channels,
               v->channels);
    return cairn_hint(err, "latents with 16 channels are of Wan 2.1's VAE, those with 48 of Wan 2.2's");
}

static int decode_once(struct decoder *d, const struct decode_clip *c, const struct decode_sink *to,
                       struct cairn_error *err)
{
    if (!d->vae && vae_open(&d->vae, &d->device.nn, d->o.vae, false, true, err))
        return -1;
    const struct vae_info *v = vae_info(d->vae);
    if (check_kind(v, c, err))
        return -1;
    struct vae_size size = { (c->frames - 1) * v->stride_time + 1, c->height * v->stride,
                             c->width * v->stride };
    CLEANUP(frames_release) struct frames frames = { .sink = to };
    struct vae_sink sink = { write_frames, &frames };
    struct vae_layout layout;
    uint64_t budget = encode_device_budget(&d->device), weights = vae_weight_bytes(d->vae);
    if (budget != UINT64_MAX)
        budget = budget > weights ? budget - weights : 0;
    return vae_plan(d->vae, false, &size, budget, &layout, err) ||
                   picture_new(&frames.frame, size.width, size.height, 3, err) ||
                   to->start(to->ctx, &size, v->version == 22 ? FPS_22 : FPS_21, err) ||
                   vae_decode(d->vae, &size, &layout, c->values, &sink, err)
               ? -1
               : 0;
}

int decode_latents(struct decoder *d, const struct decode_clip *c, const struct decode_sink *to,
                   struct cairn_error *err)
{
    while (decode_once(d, c, to, err)) {
        vae_close(d->vae);
        d->vae = NULL;
        if (encode_device_fall_back(&d->device, err))
            return -1;
    }
    return 0;
}

/* ---- files of caches ---- */

/* A PNG is one large picture with the frames in rows; an MP4 gets them one by one. */
struct output {
    const char *path;
    struct vae_size size;
    struct picture sheet;
    size_t across; /* frames in a row of the sheet */
    struct clip_writer *clip;
};

static void output_close(struct output *o)
{
    clip_writer_close(o->clip);
    o->clip = NULL;
    picture_free(&o->sheet);
}

static int output_start(void *ctx, const struct vae_size *size, double fps, struct cairn_error *err)
{
    struct output *o = ctx;
    output_close(o); /* of a first try */
    o->size = *size;
    if (!str_ends(o->path, ".png"))
        return clip_writer_open(
            &o->clip, &(struct media_options){ 0 }, o->path,
            &(struct clip_format){
                .width = size->width, .height = size->height, .fps = fps, .replace = true },
            err);
    o->across = (size_t)ceil(sqrt((double)size->frames));
    size_t rows = (size->frames + o->across - 1) / o->across;
    if (picture_new(&o->sheet, size->width * o->across, size->height * rows, 3, err))
        return -1;
    memset(o->sheet.at, 0, picture_bytes(&o->sheet));
    return 0;
}

static int output_frame(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err)
{
    struct output *o = ctx;
    if (o->clip)
        return clip_writer_add(o->clip, p, err);
    size_t row = o->size.width * 3, sheet_row = o->sheet.width * 3;
    uint8_t *to = o->sheet.at + frame / o->across * o->size.height * sheet_row + frame % o->across * row;
    for (size_t y = 0; y < o->size.height; y++)
        memcpy(to + y * sheet_row, p->at + y * row, row);
    return 0;
}

int decode_file(struct decoder *d, const char *latents, const char *out, struct cairn_error *err)
{
    struct video_item item = { .path = latents };
    if (!str_ends(out, ".png") && !str_ends(out, ".mp4"))
        return cairn_fail(err, CAIRN_EUSAGE, "%s: the name must end with .png or .mp4", out);
    if (video_item_open(&item, &(struct video_needs){ 0 }, err))
        return -1;
    CLEANUP(mem_free) float *values = malloc(item.parts[VIDEO_LATENTS].values * sizeof(float));
    if (!values)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for its latents", latents);
    if (video_item_read(&item, VIDEO_LATENTS, values, err))
        return -1;
    CLEANUP(output_close) struct output o = { .path = out };
    struct decode_clip c = { latents, values, item.channels, item.frames, item.height, item.width };
    if (decode_latents(d, &c, &(struct decode_sink){ output_start, output_frame, &o }, err))
        return -1;
    return o.clip ? clip_writer_commit(o.clip, err) : png_write(out, &o.sheet, err);
}
