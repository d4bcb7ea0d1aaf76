/* SPDX-License-Identifier: Apache-2.0
 * The inputs of a network's blocks, saved in host memory from the forward pass until the backward pass needs
 * them.  A few buffers on the device hold those in use; copies overlap with the work.
 *
 *     save_ring_first(r, bytes, s, err);   r->at[0] may be written; the inputs of this pass have so many bytes
 *     for each block i, forward:
 *         save_ring_next(r, i, s, err);        so may r->at[i + 1], the output, which is the next block's input
 *         …
 *         save_ring_save(r, i, s, keep, err);  at[i] was read the last time, and goes to the host if `keep`
 *     for each block i, backward:
 *         save_ring_need(r, i, s, err);        r->at[i] is there again; the one before it is on its way
 *         …
 *         save_ring_passed(r, i, s, err);
 *
 * The output of the last block is not an input: save_ring_next of the last block does nothing.  All calls do
 * nothing to a ring that is not open, so that a network calls them in any case. */
#ifndef CAIRN_GPU_SAVE_RING_H
#define CAIRN_GPU_SAVE_RING_H

#include "gpu/offload.h"

struct save_ring {
    struct offload *offload; /* NULL: not open */
    void **at;               /* of each input, while it is on the device; the caller's array */
    size_t n;
};

/* n inputs of at most so many bytes.  CAIRN_ELACK if the host has not enough memory; CAIRN_ENOMEM if the
 * device has not. */
int save_ring_open(struct save_ring *r, struct gpu *g, size_t n, size_t bytes, void **at,
                   struct cairn_error *err);
void save_ring_close(struct save_ring *r);
size_t save_ring_device_bytes(size_t n, size_t bytes);
size_t save_ring_host_bytes(size_t n, size_t bytes);

int save_ring_first(struct save_ring *r, size_t bytes, struct gpu_stream *s, struct cairn_error *err);
int save_ring_next(struct save_ring *r, size_t block, struct gpu_stream *s, struct cairn_error *err);
int save_ring_save(struct save_ring *r, size_t block, struct gpu_stream *s, bool keep,
                   struct cairn_error *err);
int save_ring_need(struct save_ring *r, size_t block, struct gpu_stream *s, struct cairn_error *err);
int save_ring_passed(struct save_ring *r, size_t block, struct gpu_stream *s, struct cairn_error *err);

#endif
