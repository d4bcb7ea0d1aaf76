/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/pool.h"

#include "base/int.h"
#include "gpu/backend.h"
#include "gpu/pool_inside.h"
#include <inttypes.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)
static const size_t small_most = 128 << 10;
/* Blocks for chunks below 16 MiB hold several of them; larger chunks get blocks of their own size. */
static const size_t grow_below = 16 * MIB, grow_block = 32 * MIB, warm_block = 256 * MIB;

static size_t round_up(size_t n, size_t to)
{
    return n > SIZE_MAX - to ? n : align_up(n, to);
}

/* Pages for what is not small, so that all pieces of a large block lie on pages. */
static size_t round_size(size_t size)
{
    return round_up(size ? size : 1, size <= small_most ? POOL_UNIT : POOL_PAGE);
}

/* ---- blocks from the backend ---- */

static int over_budget(const struct pool *p, size_t size, struct cairn_error *err)
{
    const struct pool_stats *st = &p->stats;
    if (!p->budget || (size <= p->budget && st->reserved_bytes <= p->budget - size))
        return 0;
    cairn_fail(err, CAIRN_ENOMEM,
               "%s: allocate %zu bytes: out of memory: %" PRIu64 " of %" PRIu64
               " MiB of the memory limit are in use",
               p->g->info.name, size, st->reserved_bytes / MIB, p->budget / MIB);
    return cairn_hint(err, "use a smaller model or batch, or end other programs that use the memory");
}

static void count_reserved(struct pool *p, size_t size)
{
    struct pool_stats *st = &p->stats;
    st->reserved_bytes += size;
    if (st->reserved_bytes > st->peak_reserved_bytes)
        st->peak_reserved_bytes = st->reserved_bytes;
}

static int alloc_block(struct pool *p, size_t size, struct block **out, struct cairn_error *err)
{
    void *at;
    if (over_budget(p, size, err) || p->g->backend->alloc(p->g, GPU_MEM_DEVICE, size, &at, err))
        return -1;
    struct block *b = pool_block_new(p, at, size);
    pool_list_add(&p->blocks, b);
    count_reserved(p, size);
    *out = b;
    return 0;
}

static void free_block(struct pool *p, struct block *b)
{
    p->g->backend->free(p->g, GPU_MEM_DEVICE, b->at);
    p->stats.reserved_bytes -= b->size;
    pool_list_remove(&p->blocks, b);
    pool_record_free(p, b->first);
    free(b);
}

static int grow_by(struct pool *p, size_t size, struct cairn_error *err)
{
    struct block *b;
    if (alloc_block(p, size, &b, err))
        return -1;
    b->first->is_free = true;
    pool_bin_add(&p->large, b->first);
    return 0;
}

/* More than requested if possible. */
static int grow(struct pool *p, size_t n, struct cairn_error *err)
{
    struct cairn_error more = { 0 };
    size_t size = n < grow_below ? grow_block : round_up(n, 2 * MIB);
    if (size > n && !grow_by(p, size, &more))
        return 0;
    if (size > n && more.code != CAIRN_ENOMEM) {
        *err = more;
        return -1;
    }
    return grow_by(p, n, err);
}

void pool_warm(struct pool *p, uint64_t bytes)
{
    struct cairn_error ignored = { 0 };
    while (!p->direct && bytes >= warm_block && !grow_by(p, warm_block, &ignored))
        bytes -= warm_block;
}

static void release_small_blocks(struct pool *p)
{
    for (struct block *b = p->small_blocks, *next; b; b = next) {
        next = b->next;
        if (pool_is_empty(b))
            pool_put_small_block(p, b);
    }
}

uint64_t pool_release(struct pool *p)
{
    struct cairn_error ignored = { 0 };
    uint64_t before = p->stats.reserved_bytes;
    release_small_blocks(p);
    bool waited = false;
    for (struct block *b = p->blocks, *next; b; b = next) {
        next = b->next;
        if (b->direct || !pool_is_empty(b))
            continue;
        if (!waited && pool_wait_all(p, &ignored))
            break;
        waited = true;
        pool_bin_remove(&p->large, b->first);
        free_block(p, b);
    }
    return before - p->stats.reserved_bytes;
}

void pool_reset(struct pool *p)
{
    struct pool_stats *st = &p->stats;
    pool_release(p);
    st->peak_bytes = st->allocated_bytes;
    st->peak_reserved_bytes = st->reserved_bytes;
    p->settled_peak = 0;
}

/* The peak use plus a little is enough.  Applied once per new peak, because a step that does not fit grows
 * the pool again and then keeps the memory. */
static uint64_t enough(struct pool *p, uint64_t released)
{
    uint64_t peak = p->stats.peak_bytes, want = round_up(peak + peak / 64, 2 * MIB),
             have = p->stats.reserved_bytes;
    if (p->settled_peak == peak || want <= have || want - have >= released)
        return released;
    p->settled_peak = peak;
    return want - have;
}

void pool_settle(struct pool *p)
{
    struct cairn_error ignored = { 0 };
    int n = 0;
    for (const struct block *b = p->blocks; b; b = b->next)
        n += !b->direct && pool_is_empty(b);
    if (n < 2)
        return;
    uint64_t bytes = pool_release(p);
    if (bytes)
        (void)grow_by(p, enough(p, bytes), &ignored); /* else the next step allocates what it needs */
}

/* ---- fallbacks ---- */

static bool can_now(struct pool *p, size_t n, struct cairn_error *err)
{
    return pool_bins_find(&p->large, n) || !grow(p, n, err);
}

static bool after_release(struct pool *p, size_t n, struct cairn_error *err)
{
    if (!pool_release(p))
        return false;
    p->stats.rungs[POOL_RELEASED]++;
    return can_now(p, n, err);
}

static bool after_compact(struct pool *p, size_t n, struct cairn_error *err)
{
    struct cairn_error ignored = { 0 };
    uint64_t moved = 0;
    if (pool_compact(p, &moved, &ignored) || !moved)
        return false;
    p->stats.rungs[POOL_COMPACTED]++;
    if (pool_bins_find(&p->large, n))
        return true;
    pool_release(p);
    return can_now(p, n, err);
}

static bool after_evict(struct pool *p, size_t n, struct cairn_error *err)
{
    while (pool_evict_one(p)) {
        p->stats.rungs[POOL_EVICTED]++;
        if (pool_bins_find(&p->large, n))
            return true;
        pool_release(p);
        if (can_now(p, n, err) || after_compact(p, n, err))
            return true;
    }
    return false;
}

static int refuse(struct pool *p, struct cairn_error *err)
{
    struct pool_stats st;
    char backend[sizeof(err->hint)];
    p->stats.rungs[POOL_REFUSED]++;
    pool_stats_get(p, &st);
    snprintf(backend, sizeof(backend), "%s", err->hint);
    return cairn_hint(err,
                      "the pool has %" PRIu64 " MiB, %" PRIu64 " in use, largest hole %" PRIu64 ", %" PRIu64
                      " on the host; its cache is released, and nothing more can be moved or evicted; %s",
                      st.reserved_bytes / MIB, st.allocated_bytes / MIB, st.hole_bytes / MIB,
                      st.host_bytes / MIB, backend);
}

static int climb(struct pool *p, size_t n, struct cairn_error *err)
{
    if (!grow(p, n, err))
        return 0;
    if (err->code != CAIRN_ENOMEM || p->busy)
        return -1;
    p->busy = true; /* allocations within a fallback must not start fallbacks */
    bool found = after_release(p, n, err) || after_compact(p, n, err) || after_evict(p, n, err);
    p->busy = false;
    if (found) {
        *err = (struct cairn_error){ 0 };
        return 0;
    }
    return err->code == CAIRN_ENOMEM ? refuse(p, err) : -1;
}

/* ---- allocating ---- */

static struct chunk *alloc_large(struct pool *p, size_t n, struct cairn_error *err)
{
    struct chunk *c = pool_bins_find(&p->large, n);
    if (!c) {
        if (climb(p, n, err))
            return NULL;
        c = pool_bins_find(&p->large, n);
    }
    pool_cut(p, c, n);
    return c;
}

/* 0 with nothing made: no memory for a block. */
static int make_small_block(struct pool *p, struct cairn_error *err)
{
    struct cairn_error full = { 0 };
    struct chunk *home = pool_bins_find(&p->large, POOL_SMALL_BLOCK);
    if (!home && grow(p, POOL_SMALL_BLOCK, &full)) {
        if (full.code == CAIRN_ENOMEM)
            return 0;
        *err = full;
        return -1;
    }
    home = pool_bins_find(&p->large, POOL_SMALL_BLOCK);
    pool_cut(p, home, POOL_SMALL_BLOCK);
    struct block *b = pool_block_new(p, home->at, POOL_SMALL_BLOCK);
    b->home = home;
    b->first->streams = home->streams;
    b->first->stamp = home->stamp;
    b->first->is_free = true;
    pool_list_add(&p->small_blocks, b);
    pool_bin_add(&p->small, b->first);
    return 0;
}

static struct chunk *alloc_small(struct pool *p, size_t n, struct cairn_error *err)
{
    struct chunk *c = pool_bins_find(&p->small, n);
    if (!c) {
        if (make_small_block(p, err))
            return NULL;
        c = pool_bins_find(&p->small, n);
        if (!c)
            return alloc_large(p, round_up(n, POOL_PAGE), err);
    }
    pool_cut(p, c, n);
    return c;
}

static struct chunk *alloc_direct(struct pool *p, size_t size, struct cairn_error *err)
{
    struct block *b;
    if (alloc_block(p, size, &b, err)) {
        if (err->code != CAIRN_ENOMEM || p->busy || !pool_evict_one(p))
            return NULL;
        p->stats.rungs[POOL_EVICTED]++;
        *err = (struct cairn_error){ 0 };
        return alloc_direct(p, size, err);
    }
    b->direct = true;
    return b->first;
}

static void count_in(struct pool *p, struct chunk *c, size_t size)
{
    struct pool_stats *st = &p->stats;
    c->asked = size;
    st->live++;
    st->allocated_bytes += size;
    if (st->allocated_bytes > st->peak_bytes)
        st->peak_bytes = st->allocated_bytes;
    c->number = p->trace ? ++p->n_traced : 0;
    if (p->trace)
        fprintf(p->trace, "a %" PRIu64 " %zu\n", c->number, size);
}

static void free_chunk(struct pool *p, struct chunk *c)
{
    if (c->block->direct)
        free_block(p, c->block);
    else
        pool_put(p, c);
}

int pool_alloc(struct pool *p, size_t size, struct gpu_stream *s, void **out, struct cairn_error *err)
{
    size_t n = round_size(size);
    struct chunk *c = p->direct         ? alloc_direct(p, size, err)
                      : n <= small_most ? alloc_small(p, n, err)
                                        : alloc_large(p, n, err);
    if (!c)
        return -1;
    if (c->streams && pool_make_ready(p, c, s, err)) {
        free_chunk(p, c);
        return -1;
    }
    pool_table_add(p, c);
    count_in(p, c, size);
    *out = c->at;
    return 0;
}

void pool_free(struct pool *p, void *at, struct gpu_stream *s)
{
    struct chunk *c = pool_chunk(p, at);
    pool_table_remove(p, at);
    p->stats.live--;
    p->stats.allocated_bytes -= c->asked;
    if (p->trace && c->number)
        fprintf(p->trace, "f %" PRIu64 "\n", c->number);
    c->streams = s == POOL_ANY ? pool_open_queues(p) : 1ull << (s ? pool_queue_of(p, s) : 0);
    c->stamp = ++p->clock;
    c->owner = NULL;
    free_chunk(p, c);
}

/* ---- the pool ---- */

struct pool *pool_open(struct gpu *g, bool direct)
{
    struct pool *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->g = g;
    p->direct = direct;
    p->n_queues = 1;
    p->queues[0].is_open = true;
    return p;
}

/* Memory of a direct pool that was not freed is left alone, so that a leak checker finds it. */
static void drop_block(struct pool *p, struct block *b)
{
    if (!b->direct)
        p->g->backend->free(p->g, GPU_MEM_DEVICE, b->at);
    pool_list_remove(&p->blocks, b);
    free(b);
}

void pool_close(struct pool *p)
{
    if (!p)
        return;
    if (p->event)
        p->g->backend->event_close(p->g, p->event);
    while (p->small_blocks) {
        struct block *b = p->small_blocks;
        pool_list_remove(&p->small_blocks, b);
        free(b);
    }
    while (p->blocks)
        drop_block(p, p->blocks);
    while (p->slabs) {
        struct slab *s = p->slabs;
        p->slabs = s->next;
        free(s);
    }
    free(p->table);
    free(p);
}

void pool_set_direct(struct pool *p)
{
    p->direct = true;
}

void pool_set_budget(struct pool *p, uint64_t bytes)
{
    p->budget = bytes;
}

void pool_trace(struct pool *p, FILE *to)
{
    p->trace = to;
}

/* What is free beside the largest hole of each block. */
static uint64_t holes(const struct pool *p)
{
    uint64_t sum = 0;
    for (const struct block *b = p->blocks; b; b = b->next) {
        uint64_t most = 0;
        for (const struct chunk *c = b->first; c; c = c->above) {
            uint64_t n = c->is_free ? c->size : 0;
            sum += n;
            most = n > most ? n : most;
        }
        sum -= most;
    }
    return sum;
}

void pool_stats_get(const struct pool *p, struct pool_stats *out)
{
    *out = p->stats;
    uint64_t hole = pool_bins_largest(&p->large), small = pool_bins_largest(&p->small);
    out->hole_bytes = hole > small ? hole : small;
    out->cached_bytes = out->reserved_bytes - out->allocated_bytes;
    if (out->reserved_bytes)
        out->fragmentation = (double)holes(p) / (double)out->reserved_bytes;
}
