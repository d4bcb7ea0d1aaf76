/* SPDX-License-Identifier: Apache-2.0
 * Memory that the pool may move: within the device, and to the host and back. */
#include "gpu/backend.h"
#include "gpu/pool_inside.h"
#include <assert.h>
#include <stdlib.h>

struct pool_buffer {
    struct pool_buffer *older, *newer;
    struct pool_owner owner;
    size_t size;
    void *at;   /* on the device, or NULL */
    void *host; /* on the host, or NULL */
    bool staging;
    int pins;
};

static void line_up(struct pool *p, struct pool_buffer *b)
{
    b->newer = NULL;
    b->older = p->newest;
    *(p->newest ? &p->newest->newer : &p->oldest) = b;
    p->newest = b;
}

static void step_out(struct pool *p, struct pool_buffer *b)
{
    *(b->older ? &b->older->newer : &p->oldest) = b->newer;
    *(b->newer ? &b->newer->older : &p->newest) = b->older;
}

static int place(struct pool *p, struct pool_buffer *b, struct cairn_error *err)
{
    if (pool_alloc(p, b->size, POOL_ANY, &b->at, err))
        return -1;
    pool_chunk(p, b->at)->owner = b;
    return 0;
}

int pool_buffer_open(struct pool *p, size_t size, const struct pool_owner *owner, struct pool_buffer **out,
                     struct cairn_error *err)
{
    struct pool_buffer *b = calloc(1, sizeof(*b));
    if (!b)
        abort();
    b->owner = *owner;
    b->size = size;
    if (place(p, b, err)) {
        free(b);
        return -1;
    }
    line_up(p, b);
    *out = b;
    return 0;
}

static void drop_host(struct pool *p, struct pool_buffer *b)
{
    if (!b->host)
        return;
    if (b->staging)
        p->g->backend->free(p->g, GPU_MEM_STAGING, b->host);
    else
        free(b->host);
    b->host = NULL;
    p->stats.host_bytes -= b->size;
}

void pool_buffer_close(struct pool *p, struct pool_buffer *b)
{
    if (!b)
        return;
    if (b->at)
        pool_free(p, b->at, POOL_ANY);
    drop_host(p, b);
    step_out(p, b);
    free(b);
}

/* Pinned memory, else any. */
static int make_host(struct pool *p, struct pool_buffer *b, struct cairn_error *err)
{
    struct cairn_error ignored = { 0 };
    b->staging = !p->g->backend->alloc(p->g, GPU_MEM_STAGING, b->size, &b->host, &ignored);
    if (!b->staging && !(b->host = malloc(b->size ? b->size : 1)))
        return cairn_fail(err, CAIRN_ENOMEM, "no host memory to evict %zu bytes", b->size);
    p->stats.host_bytes += b->size;
    return 0;
}

static int copy_and_wait(struct pool *p, void *dst, const void *src, size_t n, int direction,
                         struct cairn_error *err)
{
    const struct gpu_backend *be = p->g->backend;
    if (n && be->copy(p->g, NULL, dst, src, n, direction, err))
        return -1;
    return be->wait(p->g, NULL, err);
}

int pool_buffer_evict(struct pool *p, struct pool_buffer *b, struct cairn_error *err)
{
    if (!b->at)
        return 0;
    if (b->pins || !b->owner.offloadable)
        return cairn_fail(err, CAIRN_EUSAGE, "a buffer of %zu bytes is in use and cannot be evicted",
                          b->size);
    if (pool_wait_all(p, err) || make_host(p, b, err))
        return -1;
    if (copy_and_wait(p, b->host, b->at, b->size, GPU_DOWN, err)) {
        drop_host(p, b);
        return -1;
    }
    pool_free(p, b->at, NULL);
    pool_note_wait(p, NULL); /* the copy was the last work on it */
    b->at = NULL;
    b->owner.moved(b->owner.context, NULL);
    return 0;
}

static int bring_back(struct pool *p, struct pool_buffer *b, struct cairn_error *err)
{
    if (place(p, b, err))
        return -1;
    if (copy_and_wait(p, b->at, b->host, b->size, GPU_UP, err)) {
        pool_free(p, b->at, NULL);
        b->at = NULL;
        return -1;
    }
    drop_host(p, b);
    b->owner.moved(b->owner.context, b->at);
    return 0;
}

int pool_buffer_pin(struct pool *p, struct pool_buffer *b, void **at, struct cairn_error *err)
{
    if (!b->at && bring_back(p, b, err))
        return -1;
    b->pins++;
    step_out(p, b);
    line_up(p, b);
    *at = b->at;
    return 0;
}

void pool_buffer_unpin(struct pool *p, struct pool_buffer *b)
{
    (void)p;
    assert(b->pins > 0);
    b->pins--;
}

/* Eviction gains nothing if host and device share memory. */
bool pool_evict_one(struct pool *p)
{
    struct cairn_error ignored = { 0 };
    if (p->g->info.unified)
        return false;
    for (struct pool_buffer *b = p->oldest; b; b = b->newer)
        if (b->at && !b->pins && b->owner.offloadable)
            return !pool_buffer_evict(p, b, &ignored);
    return false;
}

/* ---- compaction ---- */

static bool is_movable(const struct chunk *c)
{
    return !c->block->direct && !c->block->home && !c->owner->pins;
}

/* Copies first, so that a copy that fails costs nothing. */
static int move_to(struct pool *p, struct pool_buffer *b, struct chunk *to, struct cairn_error *err)
{
    struct chunk *from = pool_chunk(p, b->at);
    if (copy_and_wait(p, to->at, from->at, b->size, GPU_WITHIN, err)) {
        pool_put(p, to);
        return -1;
    }
    pool_swap(p, from, to);
    b->at = to->at;
    b->owner.moved(b->owner.context, b->at);
    return 0;
}

/* Over a hole that is smaller than the buffer: by way of a larger one above.  1: it lies there, 0: there is
 * none. */
static int move_aside(struct pool *p, struct pool_buffer *b, struct cairn_error *err)
{
    const struct chunk *c = pool_chunk(p, b->at);
    struct chunk *aside = c->below && c->below->is_free ? pool_alloc_below(p, c->size, NULL) : NULL;
    if (!aside)
        return 0;
    return move_to(p, b, aside, err) ? -1 : 1;
}

static int move_down(struct pool *p, struct pool_buffer *b, uint64_t *moved, struct cairn_error *err)
{
    const struct chunk *c = pool_chunk(p, b->at);
    size_t n = c->size;
    if (!is_movable(c))
        return 0;
    struct chunk *to = pool_alloc_below(p, n, b->at);
    if (!to) {
        int r = move_aside(p, b, err);
        if (r <= 0)
            return r;
        to = pool_alloc_below(p, n, b->at); /* where it was, and the hole */
    }
    if (move_to(p, b, to, err))
        return -1;
    *moved += b->size;
    return 0;
}

int pool_compact(struct pool *p, uint64_t *moved, struct cairn_error *err)
{
    *moved = 0;
    if (!p->oldest)
        return 0;
    if (pool_wait_all(p, err))
        return -1;
    /* Repeats while it helps: the space that one buffer leaves may fit another. */
    for (uint64_t before = UINT64_MAX; before != *moved;) {
        before = *moved;
        for (struct pool_buffer *b = p->oldest; b; b = b->newer)
            if (b->at && move_down(p, b, moved, err))
                return -1;
    }
    return 0;
}
