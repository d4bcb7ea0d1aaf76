/* SPDX-License-Identifier: Apache-2.0
 * A clip's file while it is decoded: packets of its video stream, and frames in the order of their display. */
#ifndef CAIRN_MEDIA_CHILD_CLIP_FILE_H
#define CAIRN_MEDIA_CHILD_CLIP_FILE_H

#include "media/child/clip.h"
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>

struct clip_file {
    struct clip_source source;
    int64_t at, size;
    AVIOContext *io;
    AVFormatContext *format;
    AVCodecContext *codec;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    size_t good; /* frames decoded */
    bool drained, read_error;
};

int clip_file_open(struct clip_file *f, const struct clip_source *s, struct cairn_error *err);
void clip_file_close(struct clip_file *f); /* accepts one that is half open; leaves it empty */
/* The next packet of the stream into f->packet; a libav error code. */
int clip_file_packet(struct clip_file *f);
/* Did the reader need bytes behind the end of the file? */
bool clip_file_is_short(const struct clip_file *f);
/* The next frame into f->frame: 1; 0: the end; -1: damaged. */
int clip_file_frame(struct clip_file *f, struct cairn_error *err);

#endif
