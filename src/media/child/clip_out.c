/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/clip.h"
#include "media/child/out.h"

#include "os/file.h"
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IO_BUFFER = 1 << 16 };

/* Reads the file while it is written. */
struct read_back {
    int fd;
    int64_t at;
};

struct clip_out {
    struct out out;
    struct read_back back;
    int fd;
    int64_t at, size;
    AVIOContext *io;
    AVFormatContext *format;
    AVCodecContext *codec;
    AVStream *stream;
    AVFrame *frame;
    AVPacket *packet;
    struct SwsContext *sws;
    int64_t frames;
};

const char *clip_encoder(void)
{
    static const char *const names[] = { "libx264", "libopenh264", "mpeg4" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (avcodec_find_encoder_by_name(names[i]))
            return names[i];
    return NULL;
}

const char *clip_library(void)
{
    static char text[80];
    unsigned v = avcodec_version();
    snprintf(text, sizeof(text), "FFmpeg (libavcodec %u.%u.%u)", v >> 16, v >> 8 & 255, v & 255);
    return text;
}

static int failed(const char *what, int code, struct cairn_error *err)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    av_strerror(code, text, sizeof(text));
    return cairn_fail(err, code == AVERROR(ENOMEM) ? CAIRN_ENOMEM : CAIRN_EIO, "%s: %s", what, text);
}

#if LIBAVFORMAT_VERSION_MAJOR >= 61
static int write_some(void *ctx, const uint8_t *bytes, int n)
#else
static int write_some(void *ctx, uint8_t *bytes, int n)
#endif
{
    struct clip_out *c = ctx;
    for (int done = 0; done < n;) {
        ssize_t w = os_write_at(c->fd, bytes + done, (size_t)(n - done), (uint64_t)c->at);
        if (w <= 0)
            return AVERROR(w ? errno : EIO);
        done += (int)w;
        c->at += w;
    }
    c->size = c->at > c->size ? c->at : c->size;
    return n;
}

static int64_t seek_to(void *ctx, int64_t offset, int whence)
{
    struct clip_out *c = ctx;
    if (whence & AVSEEK_SIZE)
        return c->size;
    whence &= ~AVSEEK_FORCE;
    int64_t to = whence == SEEK_SET ? offset : whence == SEEK_CUR ? c->at + offset : c->size + offset;
    return to < 0 ? AVERROR(EINVAL) : (c->at = to);
}

static int read_some(void *ctx, uint8_t *into, int n)
{
    struct read_back *r = ctx;
    ssize_t got = os_read_at(r->fd, into, (size_t)n, (uint64_t)r->at);
    if (got <= 0)
        return got ? AVERROR(errno) : AVERROR_EOF;
    r->at += got;
    return (int)got;
}

static int64_t seek_back(void *ctx, int64_t offset, int whence)
{
    struct read_back *r = ctx;
    if (whence & AVSEEK_SIZE)
        return AVERROR(ENOSYS);
    int64_t to = (whence & ~AVSEEK_FORCE) == SEEK_CUR ? r->at + offset : offset;
    return to < 0 ? AVERROR(EINVAL) : (r->at = to);
}

/* The index comes to the front at the end, for which the muxer reads what it wrote. */
static int open_again(struct AVFormatContext *format, AVIOContext **out, const char *url, int flags,
                      AVDictionary **options)
{
    struct clip_out *c = format->opaque;
    (void)url, (void)options;
    uint8_t *buffer = flags & AVIO_FLAG_WRITE ? NULL : av_malloc(IO_BUFFER);
    if (!buffer)
        return AVERROR(flags & AVIO_FLAG_WRITE ? EPERM : ENOMEM);
    c->back = (struct read_back){ c->fd, 0 };
    *out = avio_alloc_context(buffer, IO_BUFFER, 0, &c->back, read_some, NULL, seek_back);
    if (!*out)
        av_free(buffer);
    return *out ? 0 : AVERROR(ENOMEM);
}

static int close_again(struct AVFormatContext *format, AVIOContext *io)
{
    (void)format;
    av_freep(&io->buffer);
    avio_context_free(&io);
    return 0;
}

static void close_clip(struct out *o)
{
    struct clip_out *c = (struct clip_out *)o;
    avcodec_free_context(&c->codec);
    avformat_free_context(c->format);
    if (c->io)
        av_freep(&c->io->buffer);
    avio_context_free(&c->io);
    av_frame_free(&c->frame);
    av_packet_free(&c->packet);
    sws_freeContext(c->sws);
    if (c->fd >= 0)
        fd_close(&c->fd);
    free(c);
}

static void close_at(struct clip_out **c)
{
    if (*c)
        close_clip(&(*c)->out);
}

static int open_codec(struct clip_out *c, const struct wire_write *w, unsigned threads,
                      struct cairn_error *err)
{
    const char *name = clip_encoder();
    const AVCodec *codec = name ? avcodec_find_encoder_by_name(name) : NULL;
    if (!codec)
        return cairn_fail(err, CAIRN_ELACK,
                          "FFmpeg's libraries on this machine have no H.264 or MPEG-4 encoder");
    c->codec = avcodec_alloc_context3(codec);
    c->frame = av_frame_alloc();
    c->packet = av_packet_alloc();
    if (!c->codec || !c->frame || !c->packet)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to encode");
    AVCodecContext *e = c->codec;
    /* Half the chroma needs an even size. */
    bool odd = (w->width | w->height) & 1;
    e->width = (int)w->width;
    e->height = (int)w->height;
    e->pix_fmt = odd && !strcmp(name, "libx264") ? AV_PIX_FMT_YUV444P : AV_PIX_FMT_YUV420P;
    e->framerate = av_d2q(w->fps, 100000);
    e->time_base = av_inv_q(e->framerate);
    e->thread_count = (int)threads;
    e->colorspace = AVCOL_SPC_BT709;
    e->color_primaries = AVCOL_PRI_BT709;
    e->color_trc = AVCOL_TRC_BT709;
    e->color_range = AVCOL_RANGE_MPEG;
    if (c->format->oformat->flags & AVFMT_GLOBALHEADER)
        e->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    if (!strcmp(name, "libx264"))
        av_opt_set(e->priv_data, "crf", "14", 0);
    else if (!strcmp(name, "mpeg4")) {
        e->flags |= AV_CODEC_FLAG_QSCALE;
        e->global_quality = 2 * FF_QP2LAMBDA;
    } else
        e->bit_rate = (int64_t)(0.3 * (double)w->width * (double)w->height * w->fps);
    int r = avcodec_open2(e, codec, NULL);
    if (r < 0)
        return failed("open the encoder", r, err);
    c->frame->format = e->pix_fmt;
    c->frame->width = e->width;
    c->frame->height = e->height;
    c->frame->colorspace = e->colorspace;
    c->frame->color_range = e->color_range;
    r = av_frame_get_buffer(c->frame, 0);
    return r < 0 ? failed("memory for a frame", r, err) : 0;
}

static int open_file(struct clip_out *c, struct cairn_error *err)
{
    uint8_t *buffer = av_malloc(IO_BUFFER);
    c->io = buffer ? avio_alloc_context(buffer, IO_BUFFER, 1, c, NULL, write_some, seek_to) : NULL;
    if (!c->io) {
        av_free(buffer);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to write a clip");
    }
    int r = avformat_alloc_output_context2(&c->format, NULL, "mp4", NULL);
    if (r < 0)
        return failed("write MP4", r, err);
    c->format->pb = c->io;
    c->format->flags |= AVFMT_FLAG_CUSTOM_IO;
    c->format->opaque = c;
    c->format->io_open = open_again;
    c->format->io_close2 = close_again;
    return 0;
}

static int encode(struct clip_out *c, const AVFrame *frame, struct cairn_error *err)
{
    int r = avcodec_send_frame(c->codec, frame);
    while (r >= 0) {
        r = avcodec_receive_packet(c->codec, c->packet);
        if (r < 0)
            break;
        c->packet->duration = 1;
        av_packet_rescale_ts(c->packet, c->codec->time_base, c->stream->time_base);
        c->packet->stream_index = c->stream->index;
        r = av_interleaved_write_frame(c->format, c->packet);
    }
    return r == AVERROR(EAGAIN) || r == AVERROR_EOF ? 0 : failed("write a frame", r, err);
}

static int add(struct out *o, const uint8_t *rgb, struct cairn_error *err)
{
    struct clip_out *c = (struct clip_out *)o;
    const uint8_t *const planes[4] = { rgb };
    const int strides[4] = { 3 * c->codec->width };
    int r = av_frame_make_writable(c->frame);
    if (r < 0)
        return failed("memory for a frame", r, err);
    sws_scale(c->sws, planes, strides, 0, c->codec->height, c->frame->data, c->frame->linesize);
    c->frame->pts = c->frames++;
    if (c->codec->flags & AV_CODEC_FLAG_QSCALE)
        c->frame->quality = c->codec->global_quality;
    return encode(c, c->frame, err);
}

static int finish(struct out *o, struct cairn_error *err)
{
    struct clip_out *c = (struct clip_out *)o;
    if (!c->frames)
        return cairn_fail(err, CAIRN_EUSAGE, "a clip without frames");
    if (encode(c, NULL, err))
        return -1;
    int r = av_write_trailer(c->format);
    return r < 0              ? failed("write the index", r, err)
           : c->io->error < 0 ? failed("write", c->io->error, err)
                              : 0;
}

int mp4_out(struct out **out, int fd, const struct wire_write *w, unsigned threads, struct cairn_error *err)
{
    static const struct out_ops ops = { add, finish, close_clip };
    enum { MOST_SIDE = 16384 };
    if (!w->width || !w->height || w->width > MOST_SIDE || w->height > MOST_SIDE || !(w->fps >= 0.01) ||
        !(w->fps <= 1000))
        return cairn_fail(err, CAIRN_EFORMAT, "a clip of this size or rate cannot be written");
    CLEANUP(close_at) struct clip_out *c = calloc(1, sizeof(*c));
    if (!c)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to write a clip");
    av_log_set_level(AV_LOG_QUIET);
    c->out.ops = &ops;
    c->fd = -1; /* belongs to the caller until all is open */
    if (open_file(c, err) || open_codec(c, w, threads, err))
        return -1;
    c->stream = avformat_new_stream(c->format, NULL);
    if (!c->stream || avcodec_parameters_from_context(c->stream->codecpar, c->codec) < 0)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a stream");
    c->stream->time_base = c->codec->time_base;
    c->stream->avg_frame_rate = c->codec->framerate;
    c->sws = sws_getContext(c->codec->width, c->codec->height, AV_PIX_FMT_RGB24, c->codec->width,
                            c->codec->height, c->codec->pix_fmt, SWS_BICUBIC, NULL, NULL, NULL);
    if (!c->sws)
        return cairn_fail(err, CAIRN_EFORMAT, "RGB frames of this size cannot be encoded");
    sws_setColorspaceDetails(c->sws, sws_getCoefficients(SWS_CS_ITU709), 1,
                             sws_getCoefficients(SWS_CS_ITU709), 0, 0, 1 << 16, 1 << 16);
    c->fd = fd;
    AVDictionary *how = NULL;
    av_dict_set(&how, "movflags", "faststart", 0); /* a browser plays it before it has all */
    int r = avformat_write_header(c->format, &how);
    av_dict_free(&how);
    if (r < 0) {
        c->fd = -1;
        return failed("write the header", r, err);
    }
    *out = &TAKE(c)->out;
    return 0;
}
