/* SPDX-License-Identifier: Apache-2.0
 * Arrays that live on the host and visit the device piece by piece, ahead of their use.
 *
 * Each array is cut into the same number of pieces; piece i of all of them travels together, into one of a few windows
 * of the device's memory.  Copies run on streams of their own beside the work:
 *
 *     belt_send(b, i, err);               begins to bring it over; may be left out
 *     belt_get(b, i, s, at, err);         s waits for it; at[k] is where array k's part lies
 *     …                                   work on s
 *     belt_done(b, i, s, changed, err);   what was queued on s is the last to use it; what changed goes home
 *
 * A piece that still lies in a window is not sent again.  A window is reused when its piece was given out and is done, the longest
 * unused first.  A belt
 * belongs to its device's thread. */
#ifndef CAIRN_GPU_BELT_H
#define CAIRN_GPU_BELT_H

#include "gpu/gpu.h"

enum { BELT_ARRAYS = 6, BELT_WINDOWS = 3 };

struct belt_array {
    size_t bytes;       /* of all pieces */
    size_t piece_bytes; /* of one; the last may be shorter */
};

struct belt;
/* The host's memory is zeroed.  CAIRN_ELACK where it has none. */
int belt_open(struct gpu *g, const struct belt_array *arrays, size_t n, struct belt **out,
              struct cairn_error *err);
void belt_close(struct belt *b);
/* Takes the windows; else the first piece does. */
int belt_ready(struct belt *b, struct cairn_error *err);
/* What it takes: of the device, of the host. */
size_t belt_device_bytes(const struct belt_array *arrays, size_t n);
size_t belt_host_bytes(const struct belt_array *arrays, size_t n);
size_t belt_pieces(const struct belt *b);

int belt_send(struct belt *b, size_t piece, struct cairn_error *err);
int belt_get(struct belt *b, size_t piece, struct gpu_stream *s, void *at[BELT_ARRAYS],
             struct cairn_error *err);
int belt_done(struct belt *b, size_t piece, struct gpu_stream *s, bool changed, struct cairn_error *err);

/* Waits until all that changed is home, and forgets what the windows hold: then belt_home may be read and written.
 * NULL is nothing to wait for. */
int belt_rest(struct belt *b, struct cairn_error *err);
void *belt_home(const struct belt *b, size_t array);

#endif
