/* SPDX-License-Identifier: Apache-2.0
 * A device for tests of the pool that does nothing but watch: it knows which work is queued where and what waits for
 * what, so that memory which is handed out too early is found. */
#ifndef CAIRN_TESTS_POOL_DEVICE_H
#define CAIRN_TESTS_POOL_DEVICE_H

#include "check.h"
#include "gpu/backend.h"
#include "gpu/pool.h"
#include <stdlib.h>

enum { STREAMS = 4, MIB = 1 << 20 };

/* Work is a number on its stream.  What a stream knows is done when its own next work runs; what the host knows is done. */
struct clocks {
    uint64_t of[STREAMS];
};
struct gpu_stream {
    int index;
};
struct gpu_event {
    struct clocks at;
};
static struct {
    struct gpu_stream streams[STREAMS];
    struct clocks queued, host, known[STREAMS];
    uint64_t used, capacity, blocks, staging, events;
    uintptr_t next;  /* addresses that are not memory; 0: real memory */
    int fail_one_in; /* calls that may fail do so this often; 0: never */
    bool ends_only;  /* copies take the ends alone */
} dev;
static uint64_t seed = 1;

static uint64_t dice(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static int breaks(struct cairn_error *err)
{
    if (!dev.fail_one_in || dice((uint64_t)dev.fail_one_in))
        return 0;
    return cairn_fail(err, CAIRN_EIO, "told to fail");
}

static void raise_to(struct clocks *a, const struct clocks *b)
{
    for (int i = 0; i < STREAMS; i++)
        a->of[i] = b->of[i] > a->of[i] ? b->of[i] : a->of[i];
}

static int index_of(const struct gpu_stream *s)
{
    return s ? s->index : 0;
}

/* What is in use, and what was freed with work on it that may not be done. */
enum { PIECES = 160, GHOSTS = 256 };
struct piece {
    char *at; /* NULL: none; of a buffer also while it is on the host */
    size_t n;
    struct pool_buffer *buffer;
    int stream; /* STREAMS: any */
    uint64_t name;
    struct clocks used; /* the last work on it */
};
static struct piece pieces[PIECES], ghosts[GHOSTS];
static size_t n_ghosts;

static bool overlap(const struct piece *a, const struct piece *b)
{
    return a->at && b->at && a->at < b->at + (b->n ? b->n : 1) && b->at < a->at + (a->n ? a->n : 1);
}

/* Whether work on a ghost may run at the same time as work of its successor. */
static bool is_too_early(const struct piece *ghost, const struct piece *now)
{
    for (int i = 0; i < STREAMS; i++) {
        uint64_t safe = dev.host.of[i];
        if (now->stream != STREAMS && dev.known[now->stream].of[i] > safe)
            safe = dev.known[now->stream].of[i];
        if (i != now->stream && ghost->used.of[i] > safe)
            return true;
    }
    return false;
}

struct size {
    uint64_t n, at;
};

/* The host may do with this memory what it wants. */
static void check_idle(void *at, size_t n)
{
    const struct piece host = { .at = at, .n = n, .stream = STREAMS };
    for (size_t i = 0; i < n_ghosts; i++)
        if (overlap(&ghosts[i], &host) && is_too_early(&ghosts[i], &host))
            CHECK_FAIL_("a block is given back before its streams are done");
}

/* A copy on the first stream reads what others may still write. */
static void check_written(const void *at, size_t n)
{
    const struct piece copy = { .at = (char *)at, .n = n, .stream = 0 };
    for (int i = 0; i < PIECES; i++)
        if (overlap(&pieces[i], &copy) && is_too_early(&pieces[i], &copy))
            CHECK_FAIL_("a copy of what is not yet written");
}

static int dev_alloc(struct gpu *g, enum gpu_mem kind, size_t size, void **out, struct cairn_error *err)
{
    (void)g;
    if (breaks(err))
        return -1;
    if (kind == GPU_MEM_STAGING) {
        dev.staging++;
        *out = malloc(size ? size : 1);
        return 0;
    }
    if (dev.used + size > dev.capacity)
        return cairn_fail(err, CAIRN_ENOMEM, "test: out of memory");
    if (dev.next) {
        *out = (void *)dev.next;
        dev.next += size;
        return 0;
    }
    struct size *p = aligned_alloc(4096, (size + 4096 + 4095) / 4096 * 4096);
    p->n = size;
    dev.used += size;
    dev.blocks++;
    *out = (char *)p + 4096;
    return 0;
}

static void dev_free(struct gpu *g, enum gpu_mem kind, void *p)
{
    (void)g;
    if (kind == GPU_MEM_STAGING) {
        dev.staging--;
        free(p);
    } else if (!dev.next) {
        check_idle(p, ((struct size *)((char *)p - 4096))->n);
        struct size *s = (struct size *)((char *)p - 4096);
        dev.used -= s->n;
        dev.blocks--;
        free(s);
    }
}

static int dev_wait(struct gpu *g, struct gpu_stream *s, struct cairn_error *err)
{
    (void)g;
    int i = index_of(s);
    if (breaks(err))
        return -1;
    dev.known[i].of[i] = dev.queued.of[i];
    raise_to(&dev.host, &dev.known[i]);
    return 0;
}

static int dev_event_open(struct gpu *g, struct gpu_event **out, struct cairn_error *err)
{
    (void)g;
    if (breaks(err))
        return -1;
    dev.events++;
    *out = calloc(1, sizeof(**out));
    return 0;
}

static void dev_event_close(struct gpu *g, struct gpu_event *e)
{
    (void)g;
    dev.events--;
    free(e);
}

static int dev_event_record(struct gpu *g, struct gpu_event *e, struct gpu_stream *s, struct cairn_error *err)
{
    (void)g;
    int i = index_of(s);
    if (breaks(err))
        return -1;
    e->at = dev.known[i];
    e->at.of[i] = dev.queued.of[i];
    return 0;
}

static int dev_event_wait(struct gpu *g, struct gpu_stream *s, struct gpu_event *e, struct cairn_error *err)
{
    (void)g;
    if (breaks(err))
        return -1;
    raise_to(&dev.known[index_of(s)], &e->at);
    return 0;
}

static int dev_copy(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n, int direction,
                    struct cairn_error *err)
{
    (void)g, (void)s, (void)direction;
    if (breaks(err))
        return -1;
    CHECK((const char *)dst + n <= (const char *)src || (const char *)src + n <= (const char *)dst);
    check_written(src, n);
    size_t end = dev.ends_only && n > 64 ? 32 : n;
    memcpy(dst, src, end);
    memcpy((char *)dst + n - end, (const char *)src + n - end, end);
    return 0;
}

static const struct gpu_backend backend = {
    .alloc = dev_alloc,
    .free = dev_free,
    .wait = dev_wait,
    .event_open = dev_event_open,
    .event_close = dev_event_close,
    .event_record = dev_event_record,
    .event_wait = dev_event_wait,
    .copy = dev_copy,
};
static struct gpu device;

static struct pool *start(uint64_t capacity)
{
    memset(&dev, 0, sizeof(dev));
    dev.capacity = capacity;
    for (int i = 0; i < STREAMS; i++)
        dev.streams[i].index = i;
    device = (struct gpu){ .backend = &backend, .info = { .name = "test:0" } };
    return pool_open(&device, false);
}

static void finish(struct pool *p)
{
    pool_close(p);
    CHECK_INT(dev.used, 0);
    CHECK_INT(dev.blocks, 0);
    CHECK_INT(dev.staging, 0);
    CHECK_INT(dev.events, 0);
}

static void *get(struct pool *p, size_t n)
{
    struct cairn_error err = { 0 };
    void *at = NULL;
    if (pool_alloc(p, n, NULL, &at, &err))
        CHECK_FAIL_("%s", err.msg);
    return at;
}

static struct pool_stats stats_of(const struct pool *p)
{
    struct pool_stats st;
    pool_stats_get(p, &st);
    return st;
}

#endif
