/* SPDX-License-Identifier: Apache-2.0
 * The pieces of a pool: their records, where they lie, and which of them are free. */
#include "gpu/pool_inside.h"
#include <assert.h>
#include <stdlib.h>

enum { TRIES = 16 /* at pieces of a bin, for the best of them */ };

/* ---- records ---- */

static struct chunk *record_new(struct pool *p)
{
    if (!p->unused) {
        struct slab *s = malloc(sizeof(*s));
        if (!s)
            abort();
        s->next = p->slabs;
        p->slabs = s;
        for (size_t i = 0; i < POOL_SLAB; i++) {
            s->chunks[i].next = p->unused;
            p->unused = &s->chunks[i];
        }
    }
    struct chunk *c = p->unused;
    p->unused = c->next;
    *c = (struct chunk){ 0 };
    return c;
}

void pool_record_free(struct pool *p, struct chunk *c)
{
    c->next = p->unused;
    p->unused = c;
}

/* ---- the table: which piece begins at an address ---- */

static size_t table_place(const struct pool *p, const void *at)
{
    return (size_t)(((uintptr_t)at >> 4) * 0x9e3779b97f4a7c15u >> 20) & (p->table_size - 1);
}

static void table_put(struct pool *p, struct chunk *c)
{
    size_t i = table_place(p, c->at);
    while (p->table[i])
        i = (i + 1) & (p->table_size - 1);
    p->table[i] = c;
}

static void table_grow(struct pool *p)
{
    struct chunk **old = p->table;
    size_t n = p->table_size;
    p->table_size = n ? 2 * n : 1024;
    p->table = calloc(p->table_size, sizeof(*p->table));
    if (!p->table)
        abort();
    for (size_t i = 0; i < n; i++)
        if (old[i])
            table_put(p, old[i]);
    free(old);
}

void pool_table_add(struct pool *p, struct chunk *c)
{
    if (2 * p->table_used >= p->table_size)
        table_grow(p);
    p->table_used++;
    table_put(p, c);
}

static size_t table_find(const struct pool *p, const void *at)
{
    size_t i = table_place(p, at);
    while (p->table[i] && p->table[i]->at != at)
        i = (i + 1) & (p->table_size - 1);
    assert(p->table[i] && "freed memory that is not the pool's");
    return i;
}

/* What follows moves up, so that no search ends too early. */
void pool_table_remove(struct pool *p, const void *at)
{
    size_t mask = p->table_size - 1, hole = table_find(p, at);
    for (size_t i = (hole + 1) & mask; p->table[i]; i = (i + 1) & mask)
        if (((i - table_place(p, p->table[i]->at)) & mask) >= ((i - hole) & mask)) {
            p->table[hole] = p->table[i];
            hole = i;
        }
    p->table[hole] = NULL;
    p->table_used--;
}

struct chunk *pool_chunk(struct pool *p, const void *at)
{
    return p->table[table_find(p, at)];
}

/* ---- bins ---- */

static void bin_of(size_t size, unsigned *first, unsigned *second)
{
    size_t n = size / POOL_UNIT;
    unsigned top = 63 - (unsigned)__builtin_clzll(n | 1);
    *first = top < 5 ? 0 : top - 4;
    *second = (unsigned)(top < 5 ? n : n >> (top - 5)) & (POOL_SECOND_LEVELS - 1);
}

static struct bins *bins_of(struct pool *p, const struct block *b)
{
    return b->home ? &p->small : &p->large;
}

void pool_bin_add(struct bins *b, struct chunk *c)
{
    unsigned f, s;
    bin_of(c->size, &f, &s);
    c->prev = NULL;
    c->next = b->heads[f][s];
    if (c->next)
        c->next->prev = c;
    b->heads[f][s] = c;
    b->first |= 1ull << f;
    b->second[f] |= 1u << s;
}

void pool_bin_remove(struct bins *b, struct chunk *c)
{
    unsigned f, s;
    if (c->next)
        c->next->prev = c->prev;
    if (c->prev) {
        c->prev->next = c->next;
        return;
    }
    bin_of(c->size, &f, &s);
    b->heads[f][s] = c->next;
    if (!c->next) {
        b->second[f] &= ~(1u << s);
        if (!b->second[f])
            b->first &= ~(1ull << f);
    }
}

static struct chunk *best_of(struct chunk *c, size_t n)
{
    struct chunk *best = NULL;
    for (int i = 0; c && i < TRIES; i++, c = c->next)
        if (c->size >= n && (!best || c->size < best->size)) {
            best = c;
            if (c->size == n)
                break;
        }
    return best;
}

/* The next bin above that has any; they all fit. */
static struct chunk *bin_above(const struct bins *b, unsigned f, unsigned s)
{
    uint32_t second = s + 1 < POOL_SECOND_LEVELS ? b->second[f] & (~0u << (s + 1)) : 0;
    if (!second) {
        uint64_t first = b->first & (~0ull << f << 1);
        if (!first)
            return NULL;
        f = (unsigned)__builtin_ctzll(first);
        second = b->second[f];
    }
    return b->heads[f][__builtin_ctz(second)];
}

struct chunk *pool_bins_find(const struct bins *b, size_t n)
{
    unsigned f, s;
    bin_of(n, &f, &s);
    if (f >= POOL_FIRST_LEVELS)
        return NULL;
    struct chunk *c = best_of(b->heads[f][s], n);
    return c ? c : best_of(bin_above(b, f, s), n);
}

/* ---- pieces ---- */

static void unlink_record(struct pool *p, struct chunk *c)
{
    if (c->below)
        c->below->above = c->above;
    else
        c->block->first = c->above;
    if (c->above)
        c->above->below = c->below;
    pool_record_free(p, c);
}

/* c takes in the piece above it. */
static void absorb(struct pool *p, struct chunk *c, struct chunk *above)
{
    c->size += above->size;
    c->streams |= above->streams;
    c->stamp = above->stamp > c->stamp ? above->stamp : c->stamp;
    unlink_record(p, above);
}

/* Takes the first n bytes of a free piece; the rest stays free. */
void pool_cut(struct pool *p, struct chunk *c, size_t n)
{
    struct bins *bins = bins_of(p, c->block);
    pool_bin_remove(bins, c);
    c->is_free = false;
    if (c->size == n)
        return;
    struct chunk *rest = record_new(p);
    *rest = *c;
    rest->is_free = true;
    rest->at += n;
    rest->size -= n;
    rest->below = c;
    if (c->above)
        c->above->below = rest;
    c->above = rest;
    c->size = n;
    pool_bin_add(bins, rest);
}

void pool_list_add(struct block **list, struct block *b)
{
    struct block *before = NULL, *at = *list;
    for (; at && at->at < b->at; at = at->next)
        before = at;
    b->prev = before;
    b->next = at;
    *(before ? &before->next : list) = b;
    if (at)
        at->prev = b;
}

void pool_list_remove(struct block **list, struct block *b)
{
    *(b->prev ? &b->prev->next : list) = b->next;
    if (b->next)
        b->next->prev = b->prev;
}

struct block *pool_block_new(struct pool *p, char *at, size_t size)
{
    struct block *b = calloc(1, sizeof(*b));
    if (!b)
        abort();
    *b = (struct block){ .at = at, .size = size, .first = record_new(p) };
    *b->first = (struct chunk){ .block = b, .at = at, .size = size };
    return b;
}

/* One empty block of small pieces is kept for the next of them. */
void pool_put_small_block(struct pool *p, struct block *b)
{
    struct chunk *home = b->home, *all = b->first;
    home->streams = all->streams;
    home->stamp = all->stamp;
    pool_bin_remove(&p->small, all);
    pool_record_free(p, all);
    pool_list_remove(&p->small_blocks, b);
    free(b);
    pool_put(p, home);
}

bool pool_is_empty(const struct block *b)
{
    return b->first->is_free && b->first->size == b->size;
}

static bool has_other_empty(const struct pool *p, const struct block *but)
{
    const struct chunk *c = pool_bins_find(&p->small, POOL_SMALL_BLOCK);
    return c && (c->block != but || c->next);
}

/* Makes a piece free, with its neighbours. */
void pool_put(struct pool *p, struct chunk *c)
{
    struct bins *bins = bins_of(p, c->block);
    struct chunk *below = c->below, *above = c->above;
    c->is_free = true;
    if (above && above->is_free) {
        pool_bin_remove(bins, above);
        absorb(p, c, above);
    }
    if (below && below->is_free) {
        pool_bin_remove(bins, below);
        absorb(p, below, c);
        c = below;
    }
    pool_bin_add(bins, c);
    if (c->block->home && pool_is_empty(c->block) && has_other_empty(p, c->block))
        pool_put_small_block(p, c->block);
}

uint64_t pool_bins_largest(const struct bins *b)
{
    uint64_t most = 0;
    if (!b->first)
        return 0;
    unsigned f = 63 - (unsigned)__builtin_clzll(b->first), s = 31 - (unsigned)__builtin_clz(b->second[f]);
    for (const struct chunk *c = b->heads[f][s]; c; c = c->next)
        most = c->size > most ? c->size : most;
    return most;
}

/* ---- for moving ---- */

struct chunk *pool_alloc_below(struct pool *p, size_t n, const char *limit)
{
    for (struct block *b = p->blocks; b && (!limit || b->at < limit); b = b->next)
        for (struct chunk *c = b->first; c && (!limit || c->at < limit); c = c->above)
            if (c->is_free && c->size >= n) {
                pool_cut(p, c, n);
                return c;
            }
    return NULL;
}

/* What was in one piece is now in another; the first is free, and nobody works on it. */
void pool_swap(struct pool *p, struct chunk *from, struct chunk *to)
{
    pool_table_remove(p, from->at);
    to->asked = from->asked;
    to->owner = from->owner;
    to->number = from->number;
    pool_table_add(p, to);
    from->owner = NULL;
    from->streams = 0;
    pool_put(p, from);
}
