/* SPDX-License-Identifier: Apache-2.0
 * Copies between host and device.
 *
 * Data goes through a ring of pinned buffers: several threads fill buffers (from a file or from memory,
 * converted on the fly) while others are being copied.  The driver never sees a mapped file or the caller's
 * memory, because pinning such pages is what stalls ROCm.  If the CPU can access device memory, the threads
 * write to it directly and only downloads use the ring; on the CPU device nothing does.
 *
 * When a copy fails, all copies in flight are waited for and repeated: one at a time and verified, then in
 * smaller pieces. Only then is it an error (CAIRN_EDEVICE), and the caller may keep the data on the host.  If
 * pinned memory is refused, the ring is smaller or of pageable memory.  Each of these fallbacks is counted,
 * and reported once.
 *
 * A transfer belongs to its device and to the device's thread (gpu_transfer in gpu.h).  Calls return when the
 * data has arrived. */
#ifndef CAIRN_GPU_TRANSFER_H
#define CAIRN_GPU_TRANSFER_H

#include "base/str.h"
#include "gpu/gpu.h"
#include <signal.h>

struct transfer;

enum transfer_rung {
    TRANSFER_SMALL_RING, /* the ring is smaller than it should be */
    TRANSFER_PAGEABLE,   /* it is ordinary memory */
    TRANSFER_STEPS,      /* copies done again, each alone and compared */
    TRANSFER_PIECES,     /* and in smaller pieces */
    TRANSFER_REFUSED,    /* not even so */
    TRANSFER_RUNGS
};

struct transfer_stats {
    uint64_t up_bytes, down_bytes;
    uint64_t copies;     /* that the driver was asked for */
    uint64_t ring_bytes; /* pinned, or else ordinary */
    bool direct;         /* the CPU writes into the device's memory; known after the first call */
    uint64_t verified_bytes, verified_hash[2]; /* of what arrived on the device and was compared, in order */
    uint64_t rungs[TRANSFER_RUNGS];
};

/* Produces n bytes of a part from byte `at` on, or consumes them.  Called from any thread, several at once;
 * it must not call the device. */
typedef int transfer_move(void *context, uint64_t at, size_t n, void *bytes, struct cairn_error *err);

struct transfer_part {
    void *device;
    uint64_t bytes;
    size_t unit; /* `at` and n are multiples of it, but for the end; 0: of 1; at most transfer_unit_most */
    transfer_move *move;
    void *context;
    bool on_host; /* `device` is memory of the host, in the order that the device's would have */
};

struct transfer_options {
    struct gpu_stream *after; /* what is queued there and on the first stream is waited for, first */
    bool verify;              /* read back and compare; always so while debugging */
    void (*progress)(void *to, uint64_t done, uint64_t total); /* on the caller's thread; may be NULL */
    void *to;
    uint64_t before, all; /* bytes of earlier calls for the same work, and of all of them, for progress */
    const volatile sig_atomic_t *stop; /* or NULL; when it becomes true, the call fails */
    int threads;                       /* 0: all */
};
/* For calls from now on that say nothing of these themselves; NULL ends it. */
void transfer_watch(struct transfer *t, void (*progress)(void *to, uint64_t done, uint64_t total), void *to,
                    const volatile sig_atomic_t *stop);

/* Neighbours on the device are copied as one.  o may be NULL. */
int transfer_up(struct transfer *t, const struct transfer_part *parts, size_t n,
                const struct transfer_options *o, struct cairn_error *err);
int transfer_down(struct transfer *t, const struct transfer_part *parts, size_t n,
                  const struct transfer_options *o, struct cairn_error *err);
/* For context: memory of the host that is copied from or to. */
int transfer_move_from(void *memory, uint64_t at, size_t n, void *bytes, struct cairn_error *err);
int transfer_move_into(void *memory, uint64_t at, size_t n, void *bytes, struct cairn_error *err);

size_t transfer_unit_most(struct transfer *t);
void transfer_stats_get(const struct transfer *t, struct transfer_stats *out);
/* Describes a fallback that was not reported yet; false: none. */
bool transfer_news(struct transfer *t, struct str *out);

/* That others who copy had to take a rung: counted and told with the rest. */
void transfer_tell(struct transfer *t, enum transfer_rung rung, const struct cairn_error *why);

/* gpu.c has one for each device.  NULL: no memory. */
struct transfer *transfer_open(struct gpu *g);
void transfer_close(struct transfer *t);
/* For benches and tests: how many pieces the ring has, and how large they are. */
void transfer_set_ring(struct transfer *t, size_t pieces, size_t bytes);

#endif
