/* SPDX-License-Identifier: Apache-2.0
 * The writers of pictures and clips, one for each format. */
#ifndef CAIRN_MEDIA_CHILD_OUT_H
#define CAIRN_MEDIA_CHILD_OUT_H

#include "base/error.h"
#include "media/protocol.h"

/* A file that is being written; the first member of a writer's own struct. */
struct out {
    const struct out_ops *ops;
};
struct out_ops {
    int (*add)(struct out *o, const uint8_t *rgb, struct cairn_error *err);
    int (*finish)(struct out *o, struct cairn_error *err); /* then close it */
    void (*close)(struct out *o);
};

/* Writes to an open, empty file, which belongs to the writer if it succeeds. */
typedef int out_opener(struct out **out, int fd, const struct wire_write *w, unsigned threads,
                       struct cairn_error *err);
out_opener mp4_out, jpeg_out, webp_out;

struct out_format {
    const char *name, *library;
    out_opener *open; /* NULL: built without the library */
};
extern const struct out_format out_formats[WIRE_FORMATS];

/* All the bytes at the beginning of the file. */
int out_write_all(int fd, const void *bytes, size_t n, struct cairn_error *err);

#endif
