/* SPDX-License-Identifier: Apache-2.0
 * Pictures and clips of users' files.
 *
 * The formats' libraries run in a process of their own, cairn-media, with limits on memory, time and files: a
 * file that makes it crash, hang or grow is an ordinary error that names the file, and the next file gets a
 * new process.  A file is recognised by its content, never by its name.  A folder of pictures is a clip whose
 * frames are in the order of their names.
 *
 * A struct media serves one thread at a time; several of them decode at once. */
#ifndef CAIRN_MEDIA_MEDIA_H
#define CAIRN_MEDIA_MEDIA_H

#include "base/arena.h"
#include "base/error.h"
#include "media/picture.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* {0}: the defaults. */
struct media_options {
    const char *program; /* NULL: $CAIRN_MEDIA, else beside cairn or in ../libexec/cairn */
    uint64_t memory;     /* address space of the process, in bytes; 0: 6 GiB */
    uint64_t pixels;     /* a picture with more is refused; 0: 2^29, which is 23,170 x 23,170 */
    unsigned wait_s;     /* no sign of life for so long is a failure; 0: 60 */
    unsigned threads;    /* of one process; 0: 2 */
};

struct media_info {
    bool clip;
    size_t width, height; /* of the frames that media_read gives: after rotation */
    size_t frames;        /* exact; 1 for a still picture */
    double fps;           /* average; 0: unknown, or a still picture */
    bool variable_rate;
    double start_s;          /* presentation time of a clip's first frame */
    bool has_alpha;          /* media_read drops it */
    int bits;                /* of a channel, in the file */
    int orientation;         /* 1-8 as in EXIF, already applied to width, height and pixels; 1: upright */
    bool cut;                /* a clip whose data is damaged or ends early; frames: those before that place */
    const char *codec;       /* "png", "h264", … */
    const char *colour_note; /* a colour space that is not sRGB, and is not converted; NULL: none */
};

struct media;
/* CAIRN_ELACK: no cairn-media on this machine. */
/* options may be NULL: the defaults. */
int media_open(struct media **out, const struct media_options *options, struct cairn_error *err);
void media_close(struct media *m); /* accepts NULL */

/* Texts of the result are in the arena.  The pixels of a still picture are not looked at. */
int media_probe(struct media *m, const char *path, struct arena *a, struct media_info *out,
                struct cairn_error *err);

/* Decodes the frames with these ascending numbers, as RGB; a still picture has frame 0.  Alpha is dropped as
 * PIL's convert("RGB") does, rotation is applied, colour profiles are not.  `take` gets each frame in turn;
 * the picture is valid until it returns; -1 ends the reading. */
typedef int media_take(void *ctx, size_t frame, const struct picture *p, struct cairn_error *err);
int media_read(struct media *m, const char *path, const size_t *frames, size_t n, media_take *take, void *ctx,
               struct cairn_error *err);
/* For masks: one channel, as PIL's convert("L") gives it; or the alpha channel, 255 where there is none. */
int media_read_grey(struct media *m, const char *path, const size_t *frames, size_t n, media_take *take,
                    void *ctx, struct cairn_error *err);
int media_read_alpha(struct media *m, const char *path, const size_t *frames, size_t n, media_take *take,
                     void *ctx, struct cairn_error *err);

#endif
