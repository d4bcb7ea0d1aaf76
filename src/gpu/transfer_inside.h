/* SPDX-License-Identifier: Apache-2.0
 * Declarations shared by the files of the transfer. */
#ifndef CAIRN_GPU_TRANSFER_INSIDE_H
#define CAIRN_GPU_TRANSFER_INSIDE_H

#include "base/hash.h"
#include "gpu/backend.h"
#include "gpu/transfer.h"

enum { TRANSFER_SLOTS = 64, TRANSFER_WHY = 256 };

/* A piece of the ring.  Its stream is not the pool's affair: nothing is on it when a call returns. */
struct transfer_slot {
    char *bytes;
    bool pinned;
    struct gpu_stream *stream; /* NULL: the first */
};

struct transfer {
    struct gpu *g;
    size_t want_slots, want_bytes;
    struct transfer_slot slots[TRANSFER_SLOTS];
    size_t n_slots, slot_bytes;
    struct transfer_slot arrived;    /* what is read back to be compared */
    bool full;                       /* no more slots are to be had */
    enum { UNKNOWN, NO, YES } reach; /* whether the CPU reaches the device's memory */
    struct transfer_stats stats;
    struct hash verified;                   /* what stats has of it */
    char why[TRANSFER_RUNGS][TRANSFER_WHY]; /* of the first time */
    bool told[TRANSFER_RUNGS];
    struct transfer_options watch; /* for those who bring none */
};

/* Counts it, and keeps the first reason. */
void transfer_note(struct transfer *t, enum transfer_rung rung, const struct cairn_error *why);
/* Whether the CPU reaches the device's memory; finds it out, the first time. */
bool transfer_is_direct(struct transfer *t);
/* A ring for so many bytes, as far as it goes: one slot at least. */
int transfer_ring(struct transfer *t, uint64_t bytes, struct cairn_error *err);
void transfer_ring_close(struct transfer *t);
/* Until all copies on a slot's stream are done. */
int transfer_wait(struct transfer *t, const struct transfer_slot *s, struct cairn_error *err);

/* One stretch of memory on the device, and its bytes on the host. */
struct transfer_run {
    char *device, *host;
    size_t n;
};
/* Reads it back and compares; with a hash, adds what arrived to it. */
int transfer_compare(struct transfer *t, const struct transfer_run *run, struct hash *h,
                     struct cairn_error *err);
/* After a failure, with nothing on its way: alone and compared, then in smaller pieces. */
int transfer_again(struct transfer *t, const struct transfer_run *run, bool down, struct cairn_error *err);

#endif
