/* SPDX-License-Identifier: Apache-2.0
 * Arrays that live on the host and visit the device piece by piece, ahead of their use.
 *
 * Each array is cut into the same number of pieces; piece i of all of them travels together, into one of a few windows
 * of the device's memory.  Copies run on streams of their own beside the work:
 *
 *     offload_send(b, i, err);               begins to bring it over; may be left out
 *     offload_get(b, i, s, at, err);         s waits for it; at[k] is where array k's part lies
 *     …                                   work on s
 *     offload_done(b, i, s, changed, err);   what was queued on s is the last to use it; what changed goes home
 *
 * A piece that still lies in a window is not sent again.  A window is reused when its piece was given out and is done, the longest
 * unused first.  A offload
 * belongs to its device's thread. */
#ifndef CAIRN_GPU_OFFLOAD_H
#define CAIRN_GPU_OFFLOAD_H

#include "gpu/gpu.h"

enum { OFFLOAD_ARRAYS = 6, OFFLOAD_WINDOWS = 3 };

struct offload_array {
    size_t bytes;       /* of all pieces */
    size_t piece_bytes; /* of one; the last may be shorter */
};

struct offload;
/* The host's memory is zeroed.  CAIRN_ELACK where it has none. */
int offload_open(struct gpu *g, const struct offload_array *arrays, size_t n, struct offload **out,
                 struct cairn_error *err);
void offload_close(struct offload *b);
/* Takes the windows; else the first piece does. */
int offload_ready(struct offload *b, struct cairn_error *err);
/* What it takes: of the device, of the host. */
size_t offload_device_bytes(const struct offload_array *arrays, size_t n);
size_t offload_host_bytes(const struct offload_array *arrays, size_t n);
size_t offload_pieces(const struct offload *b);

int offload_send(struct offload *b, size_t piece, struct cairn_error *err);
int offload_get(struct offload *b, size_t piece, struct gpu_stream *s, void *at[OFFLOAD_ARRAYS],
                struct cairn_error *err);
int offload_done(struct offload *b, size_t piece, struct gpu_stream *s, bool changed,
                 struct cairn_error *err);

/* Waits until all that changed is home, and forgets what the windows hold: then offload_host may be read and written.
 * NULL is nothing to wait for. */
int offload_rest(struct offload *b, struct cairn_error *err);
void *offload_host(const struct offload *b, size_t array);

#endif
