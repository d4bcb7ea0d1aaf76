/* SPDX-License-Identifier: Apache-2.0
 * Writes frames as a file, through cairn-media.  An MP4 file is H.264 if FFmpeg's libraries have an encoder for it, else
 * MPEG-4; a WebP file is animated if there are several frames; a JPEG file has one.  The file gets its name when it is
 * complete. */
#ifndef CAIRN_MEDIA_CLIP_WRITER_H
#define CAIRN_MEDIA_CLIP_WRITER_H

#include "media/media.h"

struct clip_writer;
enum clip_kind { CLIP_MP4, CLIP_JPEG, CLIP_WEBP };
struct clip_format {
    size_t width, height;
    double fps;
    bool replace;
    enum clip_kind kind;
};
/* Fails at once if path exists and replace is false. */
int clip_writer_open(struct clip_writer **out, const struct media_options *options, const char *path,
                     const struct clip_format *format, struct cairn_error *err);
/* The next frame: RGB of the clip's size. */
int clip_writer_add(struct clip_writer *w, const struct picture *p, struct cairn_error *err);
/* Completes the file. */
int clip_writer_commit(struct clip_writer *w, struct cairn_error *err);
void clip_writer_close(struct clip_writer *w); /* accepts NULL; removes a file that is not committed */

#endif
