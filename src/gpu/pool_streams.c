/* SPDX-License-Identifier: Apache-2.0
 * Tracks which streams may still use freed memory. */
#include "gpu/backend.h"
#include "gpu/pool_inside.h"
#include <assert.h>

size_t pool_queue_of(const struct pool *p, const struct gpu_stream *s)
{
    for (size_t i = 0; i < p->n_queues; i++)
        if (p->queues[i].is_open && p->queues[i].s == s)
            return i;
    assert(!"unknown stream");
    return 0;
}

uint64_t pool_open_queues(const struct pool *p)
{
    uint64_t all = 0;
    for (size_t i = 0; i < p->n_queues; i++)
        all |= (uint64_t)p->queues[i].is_open << i;
    return all;
}

static int wait_queue(struct pool *p, size_t i, struct cairn_error *err)
{
    if (p->g->backend->wait(p->g, p->queues[i].s, err))
        return -1;
    p->queues[i].done = p->clock;
    return 0;
}

int pool_wait_all(struct pool *p, struct cairn_error *err)
{
    for (size_t i = 0; i < p->n_queues; i++)
        if (p->queues[i].is_open && wait_queue(p, i, err))
            return -1;
    return 0;
}

/* A stream that was closed has done its work.  A piece that was merged with a neighbour may name it with the
 * neighbour's later stamp. */
static uint64_t working_streams(const struct pool *p, const struct chunk *c)
{
    return c->streams & pool_open_queues(p);
}

/* Who may still work on a piece, but for one stream, on which work has its order anyway. */
static uint64_t still_working(const struct pool *p, const struct chunk *c, size_t but)
{
    uint64_t found = 0;
    for (uint64_t rest = working_streams(p, c) & ~(1ull << but); rest; rest &= rest - 1) {
        size_t i = (size_t)__builtin_ctzll(rest);
        if (p->queues[i].done < c->stamp && p->ordered[i][but] < c->stamp)
            found |= 1ull << i;
    }
    return found;
}

/* Stream b goes on when all that is on a now is done. */
static int order(struct pool *p, size_t a, size_t b, struct cairn_error *err)
{
    const struct gpu_backend *be = p->g->backend;
    if ((!p->event && be->event_open(p->g, &p->event, err)) ||
        be->event_record(p->g, p->event, p->queues[a].s, err) ||
        be->event_wait(p->g, p->queues[b].s, p->event, err))
        return -1;
    p->ordered[a][b] = p->clock;
    return 0;
}

/* Where one stream is all there is, its order is enough for everybody. */
int pool_make_ready(struct pool *p, const struct chunk *c, struct gpu_stream *s, struct cairn_error *err)
{
    bool any = s == POOL_ANY && pool_open_queues(p) != 1;
    if (any) {
        for (size_t i = 0; i < p->n_queues; i++)
            if (working_streams(p, c) >> i & 1 && p->queues[i].done < c->stamp && wait_queue(p, i, err))
                return -1;
        return 0;
    }
    size_t own = s == POOL_ANY || !s ? 0 : pool_queue_of(p, s);
    for (uint64_t rest = still_working(p, c, own); rest; rest &= rest - 1)
        if (order(p, (size_t)__builtin_ctzll(rest), own, err))
            return -1;
    return 0;
}

int pool_add_stream(struct pool *p, struct gpu_stream *s, struct cairn_error *err)
{
    size_t i = 0;
    while (i < p->n_queues && p->queues[i].is_open)
        i++;
    if (i == POOL_STREAMS)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: more than %d streams", p->g->info.name, POOL_STREAMS);
    /* What POOL_ANY got while the first stream was alone must be ready for this one too. */
    if (p->queues[0].done < p->clock && wait_queue(p, 0, err))
        return -1;
    p->n_queues = i == p->n_queues ? i + 1 : p->n_queues;
    p->queues[i] = (struct pool_queue){ s, p->clock, true };
    for (size_t k = 0; k < POOL_STREAMS; k++)
        p->ordered[i][k] = p->ordered[k][i] = 0;
    return 0;
}

void pool_remove_stream(struct pool *p, struct gpu_stream *s)
{
    struct cairn_error ignored = { 0 }; /* of a device that is lost: nothing of it is used again */
    size_t i = pool_queue_of(p, s);
    (void)wait_queue(p, i, &ignored);
    p->queues[i].done = p->clock;
    p->queues[i].is_open = false;
}

void pool_note_wait(struct pool *p, struct gpu_stream *s)
{
    p->queues[s ? pool_queue_of(p, s) : 0].done = p->clock;
}
