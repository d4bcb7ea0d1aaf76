/* SPDX-License-Identifier: Apache-2.0
 * What cairn and its helper process cairn-media say to each other, over a pair of stream sockets.
 *
 * A message is a wire_head and `size` bytes.  Both sides run on the same machine, so numbers are as the
 * compiler lays them out; the magic number and the version tell apart what is not of this build.  Neither side
 * trusts the other: each checks every size before it allocates, and every text before it uses it.
 *
 *   request          file passed         payload                      answers
 *   WIRE_PROBE       for reading         -                            INFO
 *   WIRE_READ        for reading         wire_read, frame numbers     FRAME…, DONE
 *   WIRE_WRITE       for writing         wire_write                   DONE
 *   WIRE_ADD         -                   wire_frame, pixels           DONE
 *   WIRE_FINISH      -                   -                            DONE
 *
 * Any answer may be an ERROR instead, after which the next request follows.  ALIVE comes between answers, now
 * and then, while a long file is worked on. */
#ifndef CAIRN_MEDIA_PROTOCOL_H
#define CAIRN_MEDIA_PROTOCOL_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { WIRE_MAGIC = 0x6361726d, WIRE_VERSION = 2 };
enum wire_kind {
    WIRE_PROBE = 1,
    WIRE_READ,
    WIRE_WRITE,
    WIRE_ADD,
    WIRE_FINISH,
    WIRE_INFO = 64,
    WIRE_FRAME,
    WIRE_DONE,
    WIRE_ERROR,
    WIRE_ALIVE,
};
/* Of a file that is written. */
enum wire_format { WIRE_MP4, WIRE_JPEG, WIRE_WEBP, WIRE_FORMATS };
enum wire_plane { WIRE_RGB, WIRE_GREY, WIRE_ALPHA };
enum { WIRE_CLIP = 1, WIRE_VARIABLE_RATE = 2, WIRE_HAS_ALPHA = 4, WIRE_CUT = 8 };
/* A request for more frames than this is refused. */
enum { WIRE_MOST_FRAMES = 1 << 22 };

struct wire_head {
    uint32_t magic;
    uint16_t version, kind;
    uint64_t size; /* of the payload */
};
struct wire_read {
    uint32_t plane, zero;
    uint64_t n; /* as many frame numbers follow, uint64_t, ascending */
};
struct wire_write {
    uint64_t width, height;
    double fps;
    uint32_t format, zero;
};
struct wire_info {
    uint64_t width, height, frames;
    double fps, start_s;
    uint32_t flags, bits, orientation, zero;
    char codec[32], colour[128]; /* NUL-terminated */
};
struct wire_frame {
    uint64_t number, width, height;
    uint32_t channels, zero; /* width * height * channels bytes follow */
};
struct wire_error {
    uint32_t code, zero; /* enum cairn_code */
    char msg[400], hint[200];
};

/* Sends a message whose payload is in two parts; `pass` is a file or -1.  Here and below: -1 with errno. */
struct wire_message {
    enum wire_kind kind;
    const void *first, *second;
    size_t first_size, second_size;
    int pass;
};
int wire_send(int fd, const struct wire_message *m, int limit_ms);
/* EPROTO: not a message of this version. */
int wire_receive_head(int fd, struct wire_head *head, int *passed, int limit_ms);

/* Bytes of the pixels of a frame; 0: impossible sizes, or more than `most` pixels. */
size_t wire_frame_bytes(const struct wire_frame *f, uint64_t most);

#endif
