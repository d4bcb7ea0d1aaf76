/* SPDX-License-Identifier: Apache-2.0
 * Declarations shared by the files of the pool. */
#ifndef CAIRN_GPU_POOL_INSIDE_H
#define CAIRN_GPU_POOL_INSIDE_H

#include "gpu/pool.h"

enum {
    POOL_STREAMS = 64,
    POOL_FIRST_LEVELS = 48,
    POOL_SECOND_LEVELS = 32,
    POOL_UNIT = 256,
    POOL_PAGE = 4096,
    POOL_SMALL_BLOCK = 2 << 20,
    POOL_SLAB = 512,
};

/* A piece of a block.  All of them lie side by side; a free one has no free neighbour. */
struct chunk {
    struct block *block;
    struct chunk *below, *above; /* neighbours in the block */
    struct chunk *next, *prev;   /* in its bin, while it is free; next also in the list of unused records */
    char *at;
    size_t size, asked;
    uint64_t streams,
        stamp; /* who may still work on it, and the pool's clock when the last of them freed it */
    struct pool_buffer *owner;
    uint64_t number; /* in the trace */
    bool is_free;
};

struct block {
    struct block *next, *prev; /* by address */
    char *at;
    size_t size;
    struct chunk *first;
    struct chunk *home; /* of a block of small pieces: where it lies itself */
    bool direct;
};

struct slab {
    struct slab *next;
    struct chunk chunks[POOL_SLAB];
};

/* Free pieces by size: a bitmap of powers of two, and one of 32 steps in each. */
struct bins {
    uint64_t first;
    uint32_t second[POOL_FIRST_LEVELS];
    struct chunk *heads[POOL_FIRST_LEVELS][POOL_SECOND_LEVELS];
};

struct pool_queue {
    struct gpu_stream *s;
    uint64_t done; /* the clock when the host last saw all of it done */
    bool is_open;
};

struct pool {
    struct gpu *g;
    bool direct, busy; /* busy: in a fallback */
    uint64_t budget;
    uint64_t settled_peak; /* for which pool_settle last gave back what was too much */
    struct bins small, large;
    struct block *blocks;       /* from the backend */
    struct block *small_blocks; /* in pieces of those */
    struct chunk *unused;       /* records */
    struct slab *slabs;
    struct chunk **table; /* pieces in use, by address */
    size_t table_size, table_used;
    struct pool_queue queues[POOL_STREAMS]; /* the first is the device's own */
    size_t n_queues;
    uint64_t ordered[POOL_STREAMS][POOL_STREAMS]; /* [a][b]: the clock when b was last told to wait for a */
    uint64_t clock;                               /* counts frees */
    struct gpu_event *event;
    struct pool_buffer *oldest, *newest; /* by last use */
    struct pool_stats stats;
    FILE *trace;
    uint64_t n_traced;
};

/* ---- pieces: pool_chunks.c ---- */

void pool_record_free(struct pool *p, struct chunk *c);
/* The table of pieces in use. */
struct chunk *pool_chunk(struct pool *p, const void *at);
void pool_table_add(struct pool *p, struct chunk *c);
void pool_table_remove(struct pool *p, const void *at);
void pool_bin_add(struct bins *b, struct chunk *c);
void pool_bin_remove(struct bins *b, struct chunk *c);
/* The best piece for n bytes, near enough; NULL: none is large enough. */
struct chunk *pool_bins_find(const struct bins *b, size_t n);
uint64_t pool_bins_largest(const struct bins *b);
/* A block that is one piece, which is not free yet; and the lists of blocks. */
struct block *pool_block_new(struct pool *p, char *at, size_t size);
void pool_list_add(struct block **list, struct block *b);
void pool_list_remove(struct block **list, struct block *b);
bool pool_is_empty(const struct block *b);
/* Takes the first n bytes of a free piece; the rest stays free. */
void pool_cut(struct pool *p, struct chunk *c, size_t n);
/* Makes a piece free, with its neighbours. */
void pool_put(struct pool *p, struct chunk *c);
void pool_put_small_block(struct pool *p, struct block *b);
/* The first free piece of n bytes below an address, or anywhere if it is NULL; NULL: there is none. */
struct chunk *pool_alloc_below(struct pool *p, size_t n, const char *limit);
/* What was in one piece is now in another; the first is free, and nobody works on it. */
void pool_swap(struct pool *p, struct chunk *from, struct chunk *to);

/* ---- streams: pool_streams.c ---- */

size_t pool_queue_of(const struct pool *p, const struct gpu_stream *s);
uint64_t pool_open_queues(const struct pool *p); /* a bit for each */
/* Waits until nothing is queued on any stream. */
int pool_wait_all(struct pool *p, struct cairn_error *err);
/* A stream, or the host for all of them, waits for those who may still work on a piece. */
int pool_make_ready(struct pool *p, const struct chunk *c, struct gpu_stream *s, struct cairn_error *err);

/* ---- buffers: pool_buffer.c ---- */

/* Evicts the buffer that was not used for the longest time.  false: there is none, or it failed. */
bool pool_evict_one(struct pool *p);

#endif
