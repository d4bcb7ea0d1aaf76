/* SPDX-License-Identifier: Apache-2.0
 * Arrays in host memory that are streamed to the device piece by piece, ahead of their use.
 *
 * Each array is cut into the same number of pieces; piece i of all of them is copied together, into one of a
 * few windows in device memory.  Copies run on streams of their own, in parallel with the work:
 *
 *     offload_send(b, i, err);               starts the upload; optional
 *     offload_get(b, i, s, at, err);         s waits for it; at[k] is the address of array k's part
 *     …                                   work on s
 *     offload_done(b, i, s, changed, err);   the work on s was its last use; changed arrays are copied back
 *
 * A piece that is still in a window is not uploaded again.  A window is reused when its piece was handed out
 * and is done, the least recently used first.
 *
 * Values that the device computes and wants back later are saved the same way:
 *
 *     offload_fresh(b, i, s, at, err);       a window without the old values
 *     …                                   work on s that writes it
 *     offload_done(b, i, s, true, err);      copied to the host while s goes on
 *     …                                   later: offload_send, offload_get, offload_done
 *
 * Only as many pieces may be held at once as there are windows.  An offload belongs to its device's
 * thread. */
#ifndef CAIRN_GPU_OFFLOAD_H
#define CAIRN_GPU_OFFLOAD_H

#include "gpu/gpu.h"

enum { OFFLOAD_ARRAYS = 6, OFFLOAD_WINDOWS = 3 };

struct offload_array {
    size_t bytes;       /* of all pieces */
    size_t piece_bytes; /* of one; the last may be shorter */
};

struct offload;
/* The host memory is zeroed.  CAIRN_ELACK if there is not enough. */
int offload_open(struct gpu *g, const struct offload_array *arrays, size_t n, struct offload **out,
                 struct cairn_error *err);
void offload_close(struct offload *b);
/* One array whose pieces have host memory of their own, which comes and goes.  `beside` is another offload
 * with pieces of the same size whose windows it shares, so that both need the device memory of one; NULL: it
 * has its own. */
int offload_open_pieces(struct gpu *g, size_t piece_bytes, size_t pieces, struct offload *beside,
                        struct offload **out, struct cairn_error *err);
int offload_piece_open(struct offload *b, size_t piece, struct cairn_error *err); /* zeroed */
void offload_piece_close(struct offload *b, size_t piece);       /* not while it may be in a window */
void *offload_piece_host(const struct offload *b, size_t piece); /* NULL: it has no memory */
/* From now on only the first so many bytes of a piece are copied. */
void offload_set_used(struct offload *b, size_t bytes);
/* Fewer windows than OFFLOAD_WINDOWS, or all again.  Those that are too many are freed at once. */
int offload_set_windows(struct offload *b, size_t n, struct cairn_error *err);
/* Allocates the windows; otherwise the first piece does. */
int offload_ready(struct offload *b, struct cairn_error *err);
/* Memory it needs: on the device, on the host. */
size_t offload_device_bytes(const struct offload_array *arrays, size_t n);
size_t offload_host_bytes(const struct offload_array *arrays, size_t n);
size_t offload_pieces(const struct offload *b);

int offload_send(struct offload *b, size_t piece, struct cairn_error *err);
int offload_get(struct offload *b, size_t piece, struct gpu_stream *s, void *at[OFFLOAD_ARRAYS],
                struct cairn_error *err);
int offload_fresh(struct offload *b, size_t piece, struct gpu_stream *s, void *at[OFFLOAD_ARRAYS],
                  struct cairn_error *err);
int offload_done(struct offload *b, size_t piece, struct gpu_stream *s, bool changed,
                 struct cairn_error *err);

/* Waits until all changes are on the host, and invalidates the windows: then offload_host may be read and
 * written.  Accepts NULL. */
int offload_rest(struct offload *b, struct cairn_error *err);
void *offload_host(const struct offload *b, size_t array);

#endif
