/* SPDX-License-Identifier: Apache-2.0
 * The memory of one device.
 *
 * A pool allocates large blocks from the backend and hands out chunks of them, best fit; free neighbours are
 * merged. Chunks of at most 128 KiB have blocks of their own.  Freed memory stays in the pool for the next
 * allocation.  A direct pool caches nothing and calls the backend each time, as on the CPU.
 *
 * Queued work may still use freed memory.  Memory freed on a stream is available at once for the next
 * allocation on this stream; another stream first waits, on the device, for the work queued on the first.
 * POOL_ANY stands for all streams: such memory may be freed while any of them uses it, and used on any of
 * them without further synchronization.
 *
 * A pool belongs to the thread of its device, which opens and closes it (gpu_pool in gpu.h). */
#ifndef CAIRN_GPU_POOL_H
#define CAIRN_GPU_POOL_H

#include "gpu/gpu.h"
#include <stdio.h>

struct pool;
struct pool_buffer; /* memory that the pool may move */

#define POOL_ANY ((struct gpu_stream *)-1)

/* Fallbacks when the device is out of memory, in this order; counted. */
enum pool_rung { POOL_RELEASED, POOL_COMPACTED, POOL_EVICTED, POOL_REFUSED, POOL_RUNGS };

struct pool_stats {
    uint64_t reserved_bytes;  /* taken from the backend */
    uint64_t allocated_bytes; /* of these, in use, as requested */
    uint64_t cached_bytes;    /* the others: free, or lost to rounding */
    uint64_t hole_bytes;      /* the largest free piece */
    uint64_t peak_bytes;      /* the most that was in use */
    uint64_t peak_reserved_bytes;
    uint64_t host_bytes; /* evicted */
    uint64_t live;       /* pieces in use */
    double
        fragmentation; /* the share of what is reserved that is free, but not in the largest hole of its block */
    uint64_t rungs[POOL_RUNGS];
};

struct pool *pool_open(struct gpu *g, bool direct); /* NULL: no memory */
void pool_close(struct pool *p);
void pool_set_direct(struct pool *p);
/* Limit for memory from the backend; 0: none. */
void pool_set_budget(struct pool *p, uint64_t bytes);
/* Allocates this much at once, in blocks of 256 MiB, as far as budget and device allow. */
void pool_warm(struct pool *p, uint64_t bytes);

/* CAIRN_ENOMEM after all fallbacks: release, compact, evict. */
int pool_alloc(struct pool *p, size_t size, struct gpu_stream *s, void **out, struct cairn_error *err);
void pool_free(struct pool *p, void *at, struct gpu_stream *s);
/* Releases unused blocks to the backend; returns how many bytes. */
uint64_t pool_release(struct pool *p);
/* The same, and forgets the peaks: other work begins. */
void pool_reset(struct pool *p);
/* Between steps: makes one block of those in which nothing is in use, so that the next step has one large
 * hole and not many small ones. */
void pool_settle(struct pool *p);
void pool_stats_get(const struct pool *p, struct pool_stats *out);

/* gpu.c tells of streams. */
int pool_add_stream(struct pool *p, struct gpu_stream *s, struct cairn_error *err);
void pool_remove_stream(struct pool *p, struct gpu_stream *s);
void pool_note_wait(struct pool *p, struct gpu_stream *s); /* all that was queued on it is done */

/* Memory that may change its place while it is not pinned, and that may be sent to the host if it is
 * offloadable.  The owner is notified of each change: now is NULL while it is on the host.  It must not call
 * the pool from there. */
struct pool_owner {
    void (*moved)(void *context, void *now);
    void *context;
    bool offloadable;
};
int pool_buffer_open(struct pool *p, size_t size, const struct pool_owner *owner, struct pool_buffer **out,
                     struct cairn_error *err);
void pool_buffer_close(struct pool *p, struct pool_buffer *b);
/* Brings it to the device if it is not there, and keeps it there until as many unpins. */
int pool_buffer_pin(struct pool *p, struct pool_buffer *b, void **at, struct cairn_error *err);
void pool_buffer_unpin(struct pool *p, struct pool_buffer *b);
/* Sends it to the host.  CAIRN_EUSAGE if it must stay. */
int pool_buffer_evict(struct pool *p, struct pool_buffer *b, struct cairn_error *err);
/* Moves buffers together, towards low addresses; how many bytes were moved. */
int pool_compact(struct pool *p, uint64_t *moved, struct cairn_error *err);

/* Writes a line for each piece: "a NUMBER BYTES", "f NUMBER".  NULL ends it. */
void pool_trace(struct pool *p, FILE *to);

#endif
