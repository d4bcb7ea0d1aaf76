/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/clip.h"

#include "media/child/clip_file.h"
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the file says ---- */

/* Clockwise quarters and mirroring as an EXIF orientation. */
static int find_orientation(const AVStream *stream)
{
#if LIBAVCODEC_VERSION_MAJOR >= 61
    const AVPacketSideData *side = av_packet_side_data_get(
        stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    const int32_t *m = side && side->size >= 36 ? (const int32_t *)side->data : NULL;
#else
    size_t size = 0;
    const int32_t *m =
        (const int32_t *)(void *)av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, &size);
    if (size < 36)
        m = NULL;
#endif
    if (!m)
        return 1;
    /* Where the stored picture's x and y axes point to. */
    int xx = (m[0] > 0) - (m[0] < 0), xy = (m[1] > 0) - (m[1] < 0);
    int yx = (m[3] > 0) - (m[3] < 0), yy = (m[4] > 0) - (m[4] < 0);
    static const struct {
        int xx, xy, yx, yy, orientation;
    } turns[] = {
        { 1, 0, 0, 1, 1 }, { -1, 0, 0, 1, 2 }, { -1, 0, 0, -1, 3 }, { 1, 0, 0, -1, 4 },
        { 0, 1, 1, 0, 5 }, { 0, 1, -1, 0, 6 }, { 0, -1, -1, 0, 7 }, { 0, -1, 1, 0, 8 },
    };
    for (size_t i = 0; i < ARRAY_LEN(turns); i++)
        if (xx == turns[i].xx && xy == turns[i].xy && yx == turns[i].yx && yy == turns[i].yy)
            return turns[i].orientation;
    return 1; /* slanted */
}

static void find_colour(const AVCodecParameters *p, char *out, size_t size)
{
    bool hdr = p->color_trc == AVCOL_TRC_SMPTE2084 || p->color_trc == AVCOL_TRC_ARIB_STD_B67;
    bool wide = p->color_primaries == AVCOL_PRI_BT2020 || p->color_primaries == AVCOL_PRI_SMPTE431 ||
                p->color_primaries == AVCOL_PRI_SMPTE432;
    if (hdr || wide)
        snprintf(out, size, "%s colours%s%s, not converted", av_color_primaries_name(p->color_primaries),
                 hdr ? " in HDR, " : "", hdr ? av_color_transfer_name(p->color_trc) : "");
}

/* ---- counting ---- */

struct times {
    int64_t *at;
    size_t n, room;
};

static void times_release(struct times *t)
{
    free(t->at);
}

static int times_add(struct times *t, int64_t time, struct cairn_error *err)
{
    if (t->n >= WIRE_MOST_FRAMES)
        return cairn_fail(err, CAIRN_EFORMAT, "a clip of more than %d frames", WIRE_MOST_FRAMES);
    if (t->n == t->room) {
        size_t room = t->room ? 2 * t->room : 1024;
        int64_t *more = realloc(t->at, room * sizeof(*more));
        if (!more)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for the times of %zu frames", room);
        t->at = more;
        t->room = room;
    }
    t->at[t->n++] = time;
    return 0;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* In these each packet is one frame, so that it need not be decoded to be counted. */
static bool has_one_frame_a_packet(const struct clip_file *f)
{
    static const enum AVCodecID codecs[] = { AV_CODEC_ID_H264, AV_CODEC_ID_HEVC,   AV_CODEC_ID_VP8,
                                             AV_CODEC_ID_VP9,  AV_CODEC_ID_AV1,    AV_CODEC_ID_MJPEG,
                                             AV_CODEC_ID_PNG,  AV_CODEC_ID_PRORES, AV_CODEC_ID_FFV1 };
    const AVCodecParameters *p = f->format->streams[f->stream]->codecpar;
    const char *name = f->format->iformat->name;
    if (!strstr(name, "mp4") && !strstr(name, "matroska"))
        return false;
    if (p->field_order != AV_FIELD_UNKNOWN && p->field_order != AV_FIELD_PROGRESSIVE)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(codecs); i++)
        if (codecs[i] == p->codec_id)
            return true;
    return false;
}

/* 1: the packets can be trusted; 0: the frames must be decoded to be counted. */
static int count_packets(struct clip_file *f, struct times *t, struct cairn_error *err)
{
    int r;
    while ((r = clip_file_packet(f)) >= 0) {
        const AVPacket *p = f->packet;
        if (!t->n && !(p->flags & AV_PKT_FLAG_KEY))
            return 0;
        if (p->flags & AV_PKT_FLAG_CORRUPT || p->pts == AV_NOPTS_VALUE)
            return 0;
        if (!(p->flags & AV_PKT_FLAG_DISCARD) && times_add(t, p->pts, err))
            return -1;
    }
    if (r != AVERROR_EOF || clip_file_is_short(f))
        return 0;
    qsort(t->at, t->n, sizeof(*t->at), by_time);
    for (size_t i = 1; i < t->n; i++)
        if (t->at[i] == t->at[i - 1])
            return 0;
    return t->n != 0;
}

static int count_frames(struct clip_file *f, struct times *t, bool *cut, struct cairn_error *err)
{
    int r;
    t->n = 0;
    while ((r = clip_file_frame(f, err)) > 0) {
        int64_t time = f->frame->best_effort_timestamp;
        if (times_add(t, time == AV_NOPTS_VALUE ? (int64_t)t->n : time, err))
            return -1;
    }
    if (!t->n)
        return r ? -1 : cairn_fail(err, CAIRN_EFORMAT, "a clip without frames");
    *cut = r < 0;
    return 0;
}

static void judge_rate(const struct clip_file *f, const struct times *t, struct wire_info *out)
{
    AVStream *stream = f->format->streams[f->stream];
    double tick = av_q2d(stream->time_base), least = INFINITY, most = 0;
    AVRational rate = av_guess_frame_rate(f->format, stream, NULL);
    out->fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
    out->start_s = t->at[0] != AV_NOPTS_VALUE ? (double)t->at[0] * tick : 0;
    for (size_t i = 1; i < t->n; i++) {
        double step = (double)(t->at[i] - t->at[i - 1]) * tick;
        least = step < least ? step : least;
        most = step > most ? step : most;
    }
    /* Rounding to ticks makes steps of a constant rate differ by two ticks at most. */
    if (t->n > 2 && most - least > 2.5 * tick && most > least * 1.02)
        out->flags |= WIRE_VARIABLE_RATE;
    /* The times count, not what the container claims; its exact ratio is taken where both agree. */
    double length = (double)(t->at[t->n - 1] - t->at[0]) * tick;
    double measured = t->n > 1 && length > 0 ? (double)(t->n - 1) / length : 0;
    if (measured > 0 && fabs(measured - out->fps) > measured * (0.005 + tick / length))
        out->fps = measured;
    if (!isfinite(out->fps))
        out->fps = 0;
    if (!isfinite(out->start_s))
        out->start_s = 0;
}

/* A container that states its length and ends long before it has lost its end.  Other streams may be longer
 * than the video, and the last frame of a variable rate may stay for long. */
static bool ends_early(const struct clip_file *f, const struct times *t, const struct wire_info *info)
{
    const AVFormatContext *c = f->format;
    if (c->nb_streams != 1 || c->duration <= 0 ||
        c->duration_estimation_method == AVFMT_DURATION_FROM_BITRATE || info->flags & WIRE_VARIABLE_RATE ||
        info->fps <= 0)
        return false;
    double length = (double)(t->at[t->n - 1] - t->at[0]) * av_q2d(c->streams[f->stream]->time_base);
    return length + 4 / info->fps < (double)c->duration / AV_TIME_BASE;
}

int clip_probe(const struct clip_source *s, struct wire_info *out, struct cairn_error *err)
{
    CLEANUP(clip_file_close) struct clip_file f = { 0 };
    CLEANUP(times_release) struct times t = { 0 };
    if (clip_file_open(&f, s, err))
        return -1;
    *out = (struct wire_info){ .flags = WIRE_CLIP };
    int counted = has_one_frame_a_packet(&f) ? count_packets(&f, &t, err) : 0;
    if (counted < 0)
        return -1;
    if (!counted) {
        bool cut = false;
        clip_file_close(&f);
        if (clip_file_open(&f, s, err) || count_frames(&f, &t, &cut, err))
            return -1;
        out->flags |= cut ? WIRE_CUT : 0;
    }
    const AVCodecParameters *p = f.format->streams[f.stream]->codecpar;
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get((enum AVPixelFormat)p->format);
    out->orientation = (uint32_t)find_orientation(f.format->streams[f.stream]);
    bool turned = image_is_turned((int)out->orientation);
    out->width = (uint64_t)(turned ? p->height : p->width);
    out->height = (uint64_t)(turned ? p->width : p->height);
    out->frames = t.n;
    out->bits = d ? (uint32_t)d->comp[0].depth : 8;
    out->flags |= d && d->flags & AV_PIX_FMT_FLAG_ALPHA ? WIRE_HAS_ALPHA : 0;
    snprintf(out->codec, sizeof(out->codec), "%s", avcodec_get_name(p->codec_id));
    find_colour(p, out->colour, sizeof(out->colour));
    judge_rate(&f, &t, out);
    out->flags |= ends_early(&f, &t, out) ? WIRE_CUT : 0;
    return 0;
}

/* ---- pixels ---- */

struct convert {
    struct SwsContext *sws;
    uint8_t *planes[4];
    int strides[4], width, height;
};

static void convert_end(struct convert *c)
{
    sws_freeContext(c->sws);
    av_freep(&c->planes[0]);
}

static bool is_full_range(const AVFrame *f)
{
    switch (f->format) {
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ444P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ411P:
        return true;
    }
    return f->color_range == AVCOL_RANGE_JPEG;
}

/* As PyAV's to_ndarray("rgb24"): bilinear chroma, the matrix that the frame names, else BT.601. */
static int convert_frame(struct convert *c, const AVFrame *f, struct image *out, struct cairn_error *err)
{
    enum AVPixelFormat to = out->channels == 4 ? AV_PIX_FMT_RGBA : AV_PIX_FMT_RGB24;
    c->sws = sws_getCachedContext(c->sws, f->width, f->height, (enum AVPixelFormat)f->format, f->width,
                                  f->height, to, SWS_BILINEAR, NULL, NULL, NULL);
    if (!c->sws)
        return cairn_fail(err, CAIRN_EFORMAT, "frames of the kind %s cannot become RGB",
                          av_get_pix_fmt_name((enum AVPixelFormat)f->format));
    sws_setColorspaceDetails(c->sws, sws_getCoefficients(f->colorspace), is_full_range(f),
                             sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
    if (!c->planes[0] && av_image_alloc(c->planes, c->strides, f->width, f->height, to, 64) < 0)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a frame of %d x %d pixels", f->width, f->height);
    out->width = (size_t)f->width;
    out->height = (size_t)f->height;
    if (!out->at && image_allocate(out, err))
        return -1;
    sws_scale(c->sws, (const uint8_t *const *)f->data, f->linesize, 0, f->height, c->planes, c->strides);
    size_t row = out->width * (size_t)out->channels;
    for (size_t y = 0; y < out->height; y++)
        memcpy(out->at + y * row, c->planes[0] + y * (size_t)c->strides[0], row);
    return 0;
}

static int hand_over(struct convert *c, const AVFrame *f, int channels, int orientation, uint64_t number,
                     clip_take *take, void *ctx, struct cairn_error *err)
{
    CLEANUP(image_release) struct image im = { .channels = channels, .orientation = orientation };
    return convert_frame(c, f, &im, err) || image_orient(&im, err) || take(ctx, number, &im, err) ? -1 : 0;
}

int clip_read(const struct clip_source *s, const uint64_t *frames, size_t n, bool alpha, clip_take *take,
              void *ctx, struct cairn_error *err)
{
    CLEANUP(clip_file_close) struct clip_file f = { 0 };
    CLEANUP(convert_end) struct convert c = { 0 };
    if (clip_file_open(&f, s, err))
        return -1;
    int orientation = find_orientation(f.format->streams[f.stream]);
    uint64_t number = 0;
    for (size_t i = 0; i < n; number++) {
        int r = clip_file_frame(&f, err);
        if (r < 0)
            return -1;
        if (!r)
            return cairn_fail(err, CAIRN_EFORMAT, "it has %llu frames; frame %llu is not there",
                              (unsigned long long)number, (unsigned long long)frames[i]);
        if (!c.width) {
            c.width = f.frame->width;
            c.height = f.frame->height;
        }
        if (f.frame->width != c.width || f.frame->height != c.height)
            return cairn_fail(err, CAIRN_EFORMAT, "its frames change from %d x %d to %d x %d pixels", c.width,
                              c.height, f.frame->width, f.frame->height);
        if (number != frames[i])
            continue;
        if (hand_over(&c, f.frame, alpha ? 4 : 3, orientation, number, take, ctx, err))
            return -1;
        i++;
    }
    return 0;
}
