/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/save_ring.h"

size_t save_ring_device_bytes(size_t n, size_t bytes)
{
    return offload_device_bytes(&(struct offload_array){ n * bytes, bytes }, 1);
}

size_t save_ring_host_bytes(size_t n, size_t bytes)
{
    return n * bytes;
}

int save_ring_open(struct save_ring *r, struct gpu *g, size_t n, size_t bytes, void **at,
                   struct cairn_error *err)
{
    *r = (struct save_ring){ .at = at, .n = n };
    int failed = offload_open_pieces(g, bytes, n, NULL, &r->offload, err);
    for (size_t i = 0; i < n && !failed; i++)
        failed = offload_piece_open(r->offload, i, err);
    if (!failed && !offload_ready(r->offload, err))
        return 0;
    save_ring_close(r);
    return -1;
}

void save_ring_close(struct save_ring *r)
{
    offload_close(r->offload);
    *r = (struct save_ring){ 0 };
}

static int write_to(struct save_ring *r, size_t i, struct gpu_stream *s, struct cairn_error *err)
{
    return offload_fresh(r->offload, i, s, &r->at[i], err);
}

int save_ring_first(struct save_ring *r, size_t bytes, struct gpu_stream *s, struct cairn_error *err)
{
    if (!r->offload)
        return 0;
    offload_set_used(r->offload, bytes);
    return write_to(r, 0, s, err);
}

int save_ring_next(struct save_ring *r, size_t block, struct gpu_stream *s, struct cairn_error *err)
{
    return r->offload && block + 1 < r->n ? write_to(r, block + 1, s, err) : 0;
}

int save_ring_save(struct save_ring *r, size_t block, struct gpu_stream *s, bool keep,
                   struct cairn_error *err)
{
    return r->offload ? offload_done(r->offload, block, s, keep, err) : 0;
}

int save_ring_need(struct save_ring *r, size_t block, struct gpu_stream *s, struct cairn_error *err)
{
    if (!r->offload)
        return 0;
    if (offload_get(r->offload, block, s, &r->at[block], err))
        return -1;
    return block ? offload_send(r->offload, block - 1, err) : 0;
}

int save_ring_passed(struct save_ring *r, size_t block, struct gpu_stream *s, struct cairn_error *err)
{
    return r->offload ? offload_done(r->offload, block, s, false, err) : 0;
}
