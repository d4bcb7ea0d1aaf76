/* SPDX-License-Identifier: Apache-2.0 */
#include "pool_device.h"

/* ---- single features ---- */

static void neighbours_become_one(void)
{
    struct pool *p = start(64 * MIB);
    void *a = get(p, 4 * MIB), *b = get(p, 4 * MIB), *c = get(p, 4 * MIB), *d = get(p, 4 * MIB);
    pool_free(p, a, NULL);
    pool_free(p, c, NULL);
    CHECK(stats_of(p).fragmentation == 0.25); /* two holes of 4 MiB beside the one above */
    pool_free(p, b, NULL);
    CHECK(stats_of(p).fragmentation == 12.0 / 32);
    CHECK(get(p, 12 * MIB) == a);
    CHECK_INT(stats_of(p).reserved_bytes, 32 * MIB);
    pool_free(p, a, NULL);
    pool_free(p, d, NULL);
    CHECK_INT(stats_of(p).hole_bytes, 32 * MIB);
    CHECK_INT(stats_of(p).live, 0);
    CHECK_INT(pool_release(p), 32 * MIB);
    CHECK_INT(dev.used, 0);
    finish(p);
}

static void the_best_hole_is_taken(void)
{
    struct pool *p = start(64 * MIB);
    void *big = get(p, 6 * MIB), *wall = get(p, MIB), *fits = get(p, 3 * MIB), *last = get(p, MIB);
    pool_free(p, fits, NULL);
    pool_free(p, big, NULL);
    CHECK(get(p, 3 * MIB - 5000) == fits);
    pool_free(p, fits, NULL);
    pool_free(p, wall, NULL);
    pool_free(p, last, NULL);
    finish(p);
}

static void places_are_aligned(void)
{
    struct pool *p = start(64 * MIB);
    for (size_t n = 0; n < 400000; n = n * 3 + 1) {
        void *at = get(p, n);
        CHECK_INT((uintptr_t)at % (n > 128 << 10 ? 4096 : 256), 0);
    }
    CHECK_INT(stats_of(p).live, 13);
    finish(p);
}

static void small_pieces_have_blocks_of_their_own(void)
{
    struct pool *p = start(64 * MIB);
    char *a = get(p, 100), *big = get(p, MIB), *b = get(p, 100);
    CHECK_INT(b - a, 256);
    CHECK(big < a || big >= a + 2 * MIB);
    finish(p);
}

static void a_budget_holds(void)
{
    struct pool *p = start(256 * MIB);
    struct cairn_error err = { 0 };
    void *at = NULL;
    pool_set_budget(p, 40 * MIB);
    pool_warm(p, 512 * MIB);
    CHECK_INT(stats_of(p).reserved_bytes, 0);
    CHECK(get(p, MIB) != NULL);
    CHECK_INT(pool_alloc(p, 36 * MIB, NULL, &at, &err), -1);
    CHECK_INT(err.code, CAIRN_ENOMEM);
    CHECK_HAS(err.msg, "of 40 MiB");
    CHECK_HAS(err.hint, "the pool has 32 MiB, 1 in use");
    CHECK(get(p, 8 * MIB) && get(p, 20 * MIB));
    CHECK(get(p, 7 * MIB) != NULL); /* no whole block any more, but what is asked for */
    CHECK_INT(stats_of(p).rungs[POOL_REFUSED], 1);
    finish(p);
}

static void warming_takes_blocks(void)
{
    struct pool *p = start((uint64_t)600 * MIB);
    pool_warm(p, (uint64_t)1024 * MIB);
    CHECK_INT(dev.blocks, 2);
    CHECK_INT(stats_of(p).reserved_bytes, 512 * MIB);
    CHECK(get(p, 200 * MIB) && get(p, 200 * MIB));
    CHECK_INT(dev.blocks, 2);
    finish(p);
}

static void an_empty_cache_makes_room(void)
{
    struct pool *p = start(64 * MIB);
    for (int i = 0; i < 2; i++)
        pool_free(p, get(p, 20 * MIB + (size_t)i * 2 * MIB), NULL);
    CHECK(get(p, 60 * MIB) != NULL);
    CHECK_INT(stats_of(p).rungs[POOL_RELEASED], 1);
    finish(p);
}

/* ---- streams ---- */

static void another_stream_waits(void)
{
    struct pool *p = start(64 * MIB);
    struct cairn_error err = { 0 };
    void *at = NULL;
    REQUIRE(!pool_add_stream(p, &dev.streams[1], &err));
    void *a = get(p, 30 * MIB);
    dev.queued.of[0] = 5;
    pool_free(p, a, NULL);
    REQUIRE(!pool_alloc(p, 30 * MIB, NULL, &at, &err));
    CHECK(at == a && dev.events == 0); /* the same stream: at once */
    pool_free(p, a, NULL);
    REQUIRE(!pool_alloc(p, 30 * MIB, &dev.streams[1], &at, &err));
    CHECK(at == a);
    CHECK_INT(dev.known[1].of[0], 5);
    CHECK_INT(dev.host.of[0], 0); /* the host did not wait */
    dev.queued.of[1] = 7;
    pool_free(p, a, &dev.streams[1]);
    REQUIRE(!pool_alloc(p, 30 * MIB, POOL_ANY, &at, &err));
    CHECK(at == a);
    CHECK_INT(dev.host.of[1], 7);
    finish(p);
}

static void a_closed_stream_is_waited_for(void)
{
    struct pool *p = start(64 * MIB);
    struct cairn_error err = { 0 };
    void *at;
    REQUIRE(!pool_add_stream(p, &dev.streams[1], &err));
    REQUIRE(!pool_alloc(p, 30 * MIB, &dev.streams[1], &at, &err));
    dev.queued.of[1] = 3;
    pool_free(p, at, &dev.streams[1]);
    pool_remove_stream(p, &dev.streams[1]);
    CHECK_INT(dev.host.of[1], 3);
    finish(p);
}

/* A piece of a stream that was closed becomes one with a neighbour that is freed later. */
static void a_closed_stream_is_not_waited_for_again(void)
{
    struct pool *p = start(64 * MIB);
    struct cairn_error err = { 0 };
    void *a, *at = NULL;
    REQUIRE(!pool_add_stream(p, &dev.streams[1], &err) && !pool_add_stream(p, &dev.streams[2], &err));
    REQUIRE(!pool_alloc(p, 4 * MIB, &dev.streams[1], &a, &err));
    void *b = get(p, 4 * MIB);
    pool_free(p, a, &dev.streams[1]);
    pool_remove_stream(p, &dev.streams[1]);
    pool_free(p, b, NULL);
    dev.queued.of[1] = 9; /* of nobody: the stream is gone */
    REQUIRE(!pool_alloc(p, 8 * MIB, POOL_ANY, &at, &err));
    CHECK(at == a);
    CHECK_INT(dev.host.of[1], 0);
    pool_free(p, at, NULL);
    REQUIRE(!pool_alloc(p, 8 * MIB, &dev.streams[2], &at, &err));
    CHECK(at == a);
    CHECK_INT(dev.known[2].of[1], 0);
    finish(p);
}

static void memory_that_changes_its_kind_is_waited_for(void)
{
    struct pool *p = start(32 * MIB);
    struct cairn_error err = { 0 };
    struct gpu_stream *first = &dev.streams[1], *second = &dev.streams[2];
    void *at, *small[40], *none;
    REQUIRE(!pool_add_stream(p, first, &err) && !pool_add_stream(p, second, &err));
    pool_free(p, get(p, 30 * MIB), NULL);
    dev.queued.of[0] = 5;
    REQUIRE(!pool_alloc(p, 100, first, &at, &err)); /* in what was large */
    CHECK_INT(dev.known[1].of[0], 5);
    pool_free(p, at, first);
    for (int i = 0; i < 40; i++) /* more than two blocks of small pieces */
        REQUIRE(!pool_alloc(p, 100 << 10, first, &small[i], &err));
    dev.queued.of[1] = 7;
    for (int i = 0; i < 40; i++)
        pool_free(p, small[i], first);
    REQUIRE(!pool_alloc(p, 28 * MIB, second, &at, &err)); /* all but the one that is kept */
    CHECK_INT(dev.known[2].of[1], 7);
    CHECK_INT(pool_alloc(p, 4 * MIB, second, &none, &err), -1);
    finish(p);
}

/* ---- buffers ---- */

static void take_place(void *context, void *now)
{
    *(void **)context = now;
}

static struct pool_buffer *buffer(struct pool *p, size_t n, bool offloadable, void **at)
{
    struct cairn_error err = { 0 };
    struct pool_buffer *b = NULL;
    struct pool_owner owner = { take_place, at, offloadable };
    if (pool_buffer_open(p, n, &owner, &b, &err) || pool_buffer_pin(p, b, at, &err)) {
        CHECK_FAIL_("%s", err.msg);
        return NULL;
    }
    memset(*at, (int)(n / MIB), n);
    pool_buffer_unpin(p, b);
    return b;
}

static bool holds(const void *at, size_t n)
{
    const unsigned char *c = at;
    return c && c[0] == n / MIB && c[n / 2] == n / MIB && c[n - 1] == n / MIB;
}

static void buffers_move_together(void)
{
    struct pool *p = start(32 * MIB);
    void *at[4], *walls[3];
    struct pool_buffer *b[4];
    for (int i = 0; i < 4; i++) {
        b[i] = buffer(p, (size_t)(2 + i) * MIB, false, &at[i]);
        if (i < 3)
            walls[i] = get(p, 5 * MIB);
    }
    for (int i = 0; i < 3; i++)
        pool_free(p, walls[i], NULL);
    CHECK(stats_of(p).hole_bytes < 18 * MIB);
    void *large = get(p, 18 * MIB); /* the holes together */
    CHECK(large != NULL);
    CHECK_INT(stats_of(p).rungs[POOL_COMPACTED], 1);
    for (int i = 0; i < 4; i++) {
        CHECK(holds(at[i], (size_t)(2 + i) * MIB));
        pool_buffer_close(p, b[i]);
    }
    finish(p);
}

static void a_pinned_buffer_stays(void)
{
    struct pool *p = start(32 * MIB);
    struct cairn_error err = { 0 };
    void *wall = get(p, 10 * MIB), *at, *pinned;
    struct pool_buffer *b = buffer(p, 10 * MIB, true, &at);
    REQUIRE(!pool_buffer_pin(p, b, &pinned, &err));
    pool_free(p, wall, NULL);
    CHECK_INT(pool_alloc(p, 20 * MIB, NULL, &wall, &err), -1);
    CHECK(at == pinned);
    CHECK_INT(pool_buffer_evict(p, b, &err), -1);
    CHECK_INT(err.code, CAIRN_EUSAGE);
    pool_buffer_unpin(p, b);
    CHECK(get(p, 20 * MIB) != NULL);
    CHECK(at != pinned && holds(at, 10 * MIB));
    pool_buffer_close(p, b);
    finish(p);
}

static void the_oldest_buffers_go_to_the_host_and_come_back(void)
{
    struct pool *p = start(32 * MIB);
    struct cairn_error err = { 0 };
    void *at[3], *now;
    struct pool_buffer *b[3];
    for (int i = 0; i < 3; i++)
        b[i] = buffer(p, (size_t)(8 + i) * MIB, true, &at[i]);
    REQUIRE(!pool_buffer_pin(p, b[0], &now, &err)); /* used last */
    pool_buffer_unpin(p, b[0]);
    void *large = get(p, 9 * MIB);
    CHECK(!at[1] && at[0] && at[2]);
    CHECK_INT(stats_of(p).host_bytes, 9 * MIB);
    CHECK_INT(stats_of(p).rungs[POOL_EVICTED], 1);
    pool_free(p, large, NULL);
    REQUIRE(!pool_buffer_pin(p, b[1], &now, &err));
    CHECK(now == at[1] && holds(now, 9 * MIB));
    CHECK_INT(stats_of(p).host_bytes, 0);
    device.info.unified = true; /* nothing is won there */
    void *none;
    CHECK_INT(pool_alloc(p, 12 * MIB, NULL, &none, &err), -1);
    CHECK_HAS(err.hint, "nothing more can be moved or evicted");
    for (int i = 0; i < 3; i++)
        pool_buffer_close(p, b[i]);
    finish(p);
}

int main(void)
{
    RUN(neighbours_become_one);
    RUN(the_best_hole_is_taken);
    RUN(places_are_aligned);
    RUN(small_pieces_have_blocks_of_their_own);
    RUN(a_budget_holds);
    RUN(warming_takes_blocks);
    RUN(an_empty_cache_makes_room);
    RUN(another_stream_waits);
    RUN(a_closed_stream_is_waited_for);
    RUN(a_closed_stream_is_not_waited_for_again);
    RUN(memory_that_changes_its_kind_is_waited_for);
    RUN(buffers_move_together);
    RUN(a_pinned_buffer_stays);
    RUN(the_oldest_buffers_go_to_the_host_and_come_back);
    return check_done();
}
