/* SPDX-License-Identifier: Apache-2.0 */
#include "media/child/clip_file.h"

#include "os/file.h"
#include "os/info.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Containers of one file; none that names other files. */
static const char containers[] = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,flv,asf,mpeg,mpegts,mpegvideo,"
                                 "h264,hevc,m4v,ogg,gif,ivf,mxf,dv,obu,nut";
enum { IO_BUFFER = 1 << 16 };

/* The library's first error message of this file, which says more than its code. */
static char said[160];

static void on_log(void *about, int level, const char *fmt, va_list ap)
{
    (void)about;
    if (level > AV_LOG_ERROR || said[0])
        return;
    vsnprintf(said, sizeof(said), fmt, ap);
    said[strcspn(said, "\n")] = '\0';
}

static int failed(const char *what, int code, struct cairn_error *err)
{
    char text[AV_ERROR_MAX_STRING_SIZE];
    av_strerror(code, text, sizeof(text));
    if (code == AVERROR(ENOMEM))
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory within the limit", what);
    return cairn_fail(err, CAIRN_EFORMAT, "%s: %s%s%s", what, text, said[0] ? ": " : "", said);
}

static int read_some(void *ctx, uint8_t *to, int n)
{
    struct clip_file *f = ctx;
    ssize_t got = os_read_at(f->source.fd, to, (size_t)n, (uint64_t)f->at);
    if (got < 0) {
        f->read_error = true;
        return AVERROR(EIO);
    }
    f->at += got;
    return got ? (int)got : AVERROR_EOF;
}

static int64_t seek_to(void *ctx, int64_t offset, int whence)
{
    struct clip_file *f = ctx;
    if (whence & AVSEEK_SIZE)
        return f->size;
    whence &= ~AVSEEK_FORCE;
    int64_t to = whence == SEEK_SET ? offset : whence == SEEK_CUR ? f->at + offset : f->size + offset;
    if (to < 0)
        return AVERROR(EINVAL);
    return f->at = to;
}

/* A playlist or an external track must not make us open other files. */
static int open_nothing(AVFormatContext *s, AVIOContext **io, const char *url, int flags,
                        AVDictionary **options)
{
    (void)s;
    (void)io;
    (void)url;
    (void)flags;
    (void)options;
    return AVERROR(EPERM);
}

static int open_container(struct clip_file *f, struct cairn_error *err)
{
    uint8_t *buffer = av_malloc(IO_BUFFER);
    f->io = buffer ? avio_alloc_context(buffer, IO_BUFFER, 0, f, read_some, NULL, seek_to) : NULL;
    if (!f->io) {
        av_free(buffer);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read a clip");
    }
    f->format = avformat_alloc_context();
    if (!f->format)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read a clip");
    f->format->pb = f->io;
    f->format->io_open = open_nothing;
    f->format->format_whitelist = av_strdup(containers);
    f->format->protocol_whitelist = av_strdup("none");
    int r = avformat_open_input(&f->format, NULL, NULL, NULL);
    if (r == AVERROR_INVALIDDATA && !said[0])
        return cairn_fail(err, CAIRN_EFORMAT, "neither a picture nor a clip of a known format");
    if (r < 0)
        return failed("not a clip that can be read", r, err);
    r = avformat_find_stream_info(f->format, NULL);
    if (r < 0)
        return failed("no information about its streams", r, err);
    f->stream = av_find_best_stream(f->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
    if (f->stream < 0 || f->format->streams[f->stream]->disposition & AV_DISPOSITION_ATTACHED_PIC)
        return cairn_fail(err, CAIRN_EFORMAT, "it has no video stream");
    return 0;
}

static int open_codec(struct clip_file *f, struct cairn_error *err)
{
    const AVCodecParameters *p = f->format->streams[f->stream]->codecpar;
    const struct image size = { .width = p->width > 0 ? (size_t)p->width : 0,
                                .height = p->height > 0 ? (size_t)p->height : 0 };
    if (image_check_size(&size, &(struct image_source){ .most_pixels = f->source.most_pixels }, err))
        return -1;
    const AVCodec *codec = avcodec_find_decoder(p->codec_id);
    if (!codec)
        return cairn_fail(err, CAIRN_ELACK, "FFmpeg's libraries on this machine cannot decode %s",
                          avcodec_get_name(p->codec_id));
    f->codec = avcodec_alloc_context3(codec);
    if (!f->codec || avcodec_parameters_to_context(f->codec, p) < 0)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to decode %s", codec->name);
    /* With threads for whole frames, a frame may be handed out before its errors are known. */
    f->codec->thread_count = (int)f->source.threads;
    f->codec->thread_type = FF_THREAD_SLICE;
    f->codec->max_pixels = (int64_t)f->source.most_pixels;
    f->codec->pkt_timebase = f->format->streams[f->stream]->time_base;
    int r = avcodec_open2(f->codec, codec, NULL);
    return r < 0 ? failed("cannot be decoded", r, err) : 0;
}

int clip_file_open(struct clip_file *f, const struct clip_source *s, struct cairn_error *err)
{
    struct os_info info;
    *f = (struct clip_file){ .source = *s };
    said[0] = '\0';
    av_log_set_callback(on_log);
    if (os_info_fd(s->fd, &info))
        return cairn_fail_errno(err, "its size is not known");
    f->size = (int64_t)info.size;
    f->packet = av_packet_alloc();
    f->frame = av_frame_alloc();
    if (!f->packet || !f->frame)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read a clip");
    if (open_container(f, err) || open_codec(f, err))
        return -1;
    for (unsigned i = 0; i < f->format->nb_streams; i++)
        f->format->streams[i]->discard = (int)i == f->stream ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    return 0;
}

void clip_file_close(struct clip_file *f)
{
    avcodec_free_context(&f->codec);
    avformat_close_input(&f->format);
    if (f->io) {
        av_freep(&f->io->buffer);
        avio_context_free(&f->io);
    }
    av_packet_free(&f->packet);
    av_frame_free(&f->frame);
    *f = (struct clip_file){ 0 };
}

int clip_file_packet(struct clip_file *f)
{
    for (;;) {
        f->source.alive();
        av_packet_unref(f->packet);
        int r = av_read_frame(f->format, f->packet);
        if (r < 0 || f->packet->stream_index == f->stream)
            return r;
    }
}

bool clip_file_is_short(const struct clip_file *f)
{
    return f->read_error || f->io->error || f->at > f->size;
}

static int damaged(const struct clip_file *f, int code, struct cairn_error *err)
{
    char what[80];
    snprintf(what, sizeof(what), "damaged after %zu good frames", f->good);
    return failed(what, code, err);
}

static int feed(struct clip_file *f, struct cairn_error *err)
{
    int r = clip_file_packet(f);
    if (r < 0 && r != AVERROR_EOF)
        return damaged(f, r, err);
    f->drained = r == AVERROR_EOF;
    if (!f->drained && f->packet->flags & AV_PKT_FLAG_CORRUPT)
        return damaged(f, AVERROR_INVALIDDATA, err);
    r = avcodec_send_packet(f->codec, f->drained ? NULL : f->packet);
    /* A recording that begins between key frames has packets first that cannot be decoded. */
    if (r < 0 && r != AVERROR_EOF && (f->good || f->drained))
        return damaged(f, r, err);
    return 0;
}

int clip_file_frame(struct clip_file *f, struct cairn_error *err)
{
    for (;;) {
        int r = avcodec_receive_frame(f->codec, f->frame);
        if (r >= 0 && (f->frame->decode_error_flags || f->frame->flags & AV_FRAME_FLAG_CORRUPT))
            return damaged(f, AVERROR_INVALIDDATA, err);
        if (r >= 0) {
            f->good++;
            return 1;
        }
        if (r == AVERROR_EOF && !f->good && said[0])
            return damaged(f, AVERROR_INVALIDDATA, err);
        if (r == AVERROR_EOF)
            return 0;
        if (r != AVERROR(EAGAIN) && f->good)
            return damaged(f, r, err);
        if (r == AVERROR(EAGAIN) && !f->drained) {
            if (feed(f, err))
                return -1;
        } else if (f->drained)
            return damaged(f, r, err);
    }
}
