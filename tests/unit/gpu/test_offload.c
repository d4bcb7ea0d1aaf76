/* SPDX-License-Identifier: Apache-2.0
 * On a device whose streams are lazy: work is only queued, and done when somebody waits, in any order that the events
 * allow.  What is not ordered properly comes out wrong sooner or later. */
#include "os/fault.h"
#include "check.h"
#include "gpu/backend.h"
#include "gpu/offload.h"
#include "gpu/pool.h"
#include <errno.h>
#include <stdlib.h>

enum { STREAMS = 3, QUEUE = 4096 };
static struct cairn_error err;
static uint64_t seed = 1;

static size_t dice(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

struct gpu_event {
    uint64_t recorded, done; /* how often; queued, and come to pass */
};
struct op {
    enum { COPY, RECORD, WAIT, WORK } kind;
    void *dst;
    const void *src;
    size_t n;
    struct gpu_event *event;
    uint64_t nth;
};
struct gpu_stream {
    struct op ops[QUEUE];
    size_t first, last;
};
static struct {
    struct gpu_stream own, more[STREAMS - 1];
    size_t streams, events, memory, ups;
    bool no_staging;
    int fail_in; /* the so many-th copy from now fails; 0: none */
} dev;

static struct gpu_stream *stream(struct gpu_stream *s)
{
    return s ? s : &dev.own;
}

static void queue(struct gpu_stream *s, struct op op)
{
    CHECK(stream(s)->last < QUEUE);
    stream(s)->ops[stream(s)->last++] = op;
}

static void work(uint8_t *x, size_t n, uint64_t by)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (uint8_t)(x[i] * 5 + by);
}

/* False: it is empty, or stands before an event that is not there yet. */
static bool do_one(struct gpu_stream *s)
{
    if (s->first == s->last)
        return false;
    struct op *op = &s->ops[s->first];
    if (op->kind == WAIT && op->event->done < op->nth)
        return false;
    if (op->kind == COPY)
        memcpy(op->dst, op->src, op->n);
    else if (op->kind == WORK)
        work(op->dst, op->n, op->nth);
    else if (op->kind == RECORD)
        op->event->done = op->nth;
    if (++s->first == s->last)
        s->first = s->last = 0;
    return true;
}

static int lazy_wait(struct gpu *g, struct gpu_stream *s, struct cairn_error *e)
{
    (void)g, (void)e;
    for (int idle = 0; stream(s)->first != stream(s)->last && idle < 1000;) {
        size_t i = dice(STREAMS);
        idle = do_one(i ? &dev.more[i - 1] : &dev.own) ? 0 : idle + 1;
    }
    CHECK(stream(s)->first == stream(s)->last);
    return 0;
}

static int lazy_alloc(struct gpu *g, enum gpu_mem kind, size_t size, void **out, struct cairn_error *e)
{
    (void)g;
    if (kind == GPU_MEM_STAGING && dev.no_staging)
        return cairn_fail(e, CAIRN_EDEVICE, "told to refuse");
    dev.memory++;
    *out = malloc(size);
    memset(*out, 0xee, size);
    return 0;
}

static void lazy_free(struct gpu *g, enum gpu_mem kind, void *p)
{
    (void)g, (void)kind;
    dev.memory--;
    free(p);
}

static int lazy_stream_open(struct gpu *g, struct gpu_stream **out, struct cairn_error *e)
{
    (void)g, (void)e;
    *out = &dev.more[dev.streams++];
    return 0;
}

static void lazy_stream_close(struct gpu *g, struct gpu_stream *s)
{
    (void)g, (void)s;
    dev.streams--;
}

static int lazy_event_open(struct gpu *g, struct gpu_event **out, struct cairn_error *e)
{
    (void)g, (void)e;
    dev.events++;
    *out = calloc(1, sizeof(**out));
    return 0;
}

static void lazy_event_close(struct gpu *g, struct gpu_event *e)
{
    (void)g;
    dev.events--;
    free(e);
}

static int lazy_event_record(struct gpu *g, struct gpu_event *ev, struct gpu_stream *s, struct cairn_error *e)
{
    (void)g, (void)e;
    queue(s, (struct op){ .kind = RECORD, .event = ev, .nth = ++ev->recorded });
    return 0;
}

static int lazy_event_wait(struct gpu *g, struct gpu_stream *s, struct gpu_event *ev, struct cairn_error *e)
{
    (void)g, (void)e;
    queue(s, (struct op){ .kind = WAIT, .event = ev, .nth = ev->recorded });
    return 0;
}

static int lazy_copy(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n, int direction,
                     struct cairn_error *e)
{
    (void)g;
    dev.ups += direction == GPU_UP;
    if (dev.fail_in && !--dev.fail_in)
        return cairn_fail(e, CAIRN_EIO, "told to fail");
    queue(s, (struct op){ .kind = COPY, .dst = dst, .src = src, .n = n });
    return 0;
}

static const struct gpu_backend backend = {
    .alloc = lazy_alloc,
    .free = lazy_free,
    .stream_open = lazy_stream_open,
    .stream_close = lazy_stream_close,
    .wait = lazy_wait,
    .event_open = lazy_event_open,
    .event_close = lazy_event_close,
    .event_record = lazy_event_record,
    .event_wait = lazy_event_wait,
    .copy = lazy_copy,
};
static struct gpu device;

/* Two arrays in seven pieces, the last of which is short, in one of them empty. */
static const struct offload_array arrays[] = { { 1300, 200 }, { 600, 100 } };
enum { PIECES = 7, ARRAYS = 2 };
static uint8_t want[ARRAYS][1300];

static void make_device(bool no_staging)
{
    memset(&dev, 0, sizeof(dev));
    dev.no_staging = no_staging;
    device = (struct gpu){ .backend = &backend, .info = { .name = "test:0" } };
    device.pool = pool_open(&device, true);
}

static struct offload *start(bool no_staging)
{
    struct offload *b;
    make_device(no_staging);
    CHECK(!offload_open(&device, arrays, ARRAYS, &b, &err));
    CHECK_INT(offload_pieces(b), PIECES);
    for (int i = 0; i < ARRAYS; i++)
        for (size_t k = 0; k < arrays[i].bytes; k++) {
            CHECK_INT(((uint8_t *)offload_host(b, (size_t)i))[k], 0);
            want[i][k] = ((uint8_t *)offload_host(b, (size_t)i))[k] = (uint8_t)dice(256);
        }
    return b;
}

static void finish(struct offload *b)
{
    offload_close(b);
    pool_close(device.pool);
    CHECK_INT(dev.memory, 0);
    CHECK_INT(dev.events, 0);
    CHECK_INT(dev.streams, 0);
}

static void check_homes(struct offload *b)
{
    CHECK(!offload_rest(b, &err));
    for (int i = 0; i < ARRAYS; i++)
        CHECK(!memcmp(offload_host(b, (size_t)i), want[i], arrays[i].bytes));
}

/* Works on a piece as the device will, and on what is wanted. */
static void use(struct offload *b, size_t piece, bool change)
{
    static uint8_t seen[1300];
    void *at[OFFLOAD_ARRAYS];
    CHECK(!offload_get(b, piece, NULL, at, &err));
    for (int i = 0; i < ARRAYS; i++) {
        size_t from = piece * arrays[i].piece_bytes;
        if (from >= arrays[i].bytes)
            continue;
        size_t n =
            arrays[i].bytes - from < arrays[i].piece_bytes ? arrays[i].bytes - from : arrays[i].piece_bytes;
        uint64_t by = dice(256);
        if (change) {
            queue(NULL, (struct op){ .kind = WORK, .dst = at[i], .n = n, .nth = by });
            work(want[i] + from, n, by);
        } else { /* reads it: now is not the time, so a copy is queued and looked at afterwards */
            queue(NULL, (struct op){ .kind = COPY, .dst = seen, .src = at[i], .n = n });
            if (dice(4) == 0) {
                CHECK(!lazy_wait(&device, NULL, &err));
                CHECK(!memcmp(seen, want[i] + from, n));
            }
        }
    }
    CHECK(!offload_done(b, piece, NULL, change, &err));
}

static void any_order_gives_the_same(void)
{
    for (int round = 0; round < 200; round++) {
        struct offload *b = start(round % 5 == 0);
        bool changing = round % 2;
        for (int i = 0; i < 60; i++) {
            if (dice(2))
                CHECK(!offload_send(b, dice(PIECES), &err));
            use(b, dice(PIECES), changing && dice(3));
            if (dice(20) == 0)
                check_homes(b);
        }
        check_homes(b);
        finish(b);
    }
}

/* A driver that refuses to pin, for whatever reason, and a host without memory. */
static void want_of_memory_is_the_host_s(void)
{
    struct offload *none;
    struct gpu_staging s;
    make_device(true);
    fault_arm(1, ENOMEM);
    CHECK(gpu_staging_open(&device, 1000, &s, &err));
    CHECK_INT(err.code, CAIRN_ENOMEM);
    fault_arm(1, ENOMEM);
    CHECK(offload_open(&device, arrays, ARRAYS, &none, &err));
    CHECK_INT(err.code, CAIRN_ELACK);
    fault_disarm();
    finish(NULL);
}

/* As a network goes through its blocks: forth and back. */
static void there_and_back_sends_little(void)
{
    struct offload *b = start(false);
    size_t before = 0;
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < PIECES; i++) {
            use(b, i, false);
            CHECK(!offload_send(b, i + 1 < PIECES ? i + 1 : i, &err));
        }
        for (size_t i = PIECES; i-- > 0;) {
            use(b, i, false);
            CHECK(!offload_send(b, i ? i - 1 : 0, &err));
        }
        /* Forth each but the three that lie there still, back the same; the first time all. */
        CHECK_INT(dev.ups - before, round ? 2 * 8 - 1 : 3 * 2 + 2 * 8 - 1);
        before = dev.ups;
    }
    check_homes(b);
    finish(b);
}

/* As an optimizer does: all once, a few ahead, and each is sent for once. */
static void ahead_of_use_nothing_is_lost(void)
{
    struct offload *b = start(false);
    for (int round = 0; round < 2; round++) {
        size_t before = dev.ups;
        for (size_t i = 0; i < OFFLOAD_WINDOWS; i++)
            CHECK(!offload_send(b, i, &err));
        for (size_t i = 0; i < PIECES; i++) {
            use(b, i, true);
            CHECK(i + OFFLOAD_WINDOWS >= PIECES || !offload_send(b, i + OFFLOAD_WINDOWS, &err));
        }
        CHECK_INT(dev.ups - before, 2 * PIECES - 1);
    }
    check_homes(b);
    finish(b);
}

/* A step that failed between get and done, and a copy that failed, leave nothing behind that is wrong. */
static void failures_do_not_spoil(void)
{
    for (int nth = 1; nth < 40; nth++) {
        struct offload *b = start(false);
        void *at[OFFLOAD_ARRAYS];
        bool failed = false;
        dev.fail_in = nth;
        for (size_t i = 0; i < 12 && !failed; i++) {
            size_t piece = dice(PIECES);
            failed = offload_get(b, piece, NULL, at, &err) || offload_done(b, piece, NULL, false, &err);
        }
        dev.fail_in = 0;
        CHECK(!offload_get(b, 3, NULL, at, &err)); /* and never done */
        queue(NULL, (struct op){ .kind = WORK, .dst = at[0], .n = 200, .nth = 1 });
        for (size_t i = 0; i < PIECES; i++)
            if (i != 3)
                use(b, i, true);
        use(b, 3, false);
        check_homes(b);
        finish(b);
    }
}

/* Two that share windows, with pieces that have memory of their own, some of which the device writes anew. */
static void shared_windows_keep_them_apart(void)
{
    enum { BYTES = 200, MOST = 6 };
    for (int round = 0; round < 100; round++) {
        struct offload *two[2];
        static uint8_t values[2][MOST][BYTES];
        make_device(false);
        CHECK(!offload_open_pieces(&device, BYTES, MOST, NULL, &two[0], &err));
        CHECK(!offload_open_pieces(&device, BYTES, MOST, two[0], &two[1], &err));
        for (size_t i = 0; i < 2 * MOST; i++) {
            CHECK(!offload_piece_host(two[i % 2], i / 2));
            CHECK(!offload_piece_open(two[i % 2], i / 2, &err));
            for (size_t k = 0; k < BYTES; k++)
                ((uint8_t *)offload_piece_host(two[i % 2], i / 2))[k] = values[i % 2][i / 2][k] =
                    (uint8_t)dice(256);
        }
        CHECK(!offload_set_windows(two[0], round % 2 ? 2 : 3, &err));
        for (int i = 0; i < 60; i++) {
            size_t of = dice(2), piece = dice(MOST);
            static uint8_t seen[BYTES], fresh[64][BYTES];
            uint8_t *x = values[of][piece];
            void *at[OFFLOAD_ARRAYS];
            if (dice(2))
                CHECK(!offload_send(two[dice(2)], dice(MOST), &err));
            if (dice(2)) {
                CHECK(!offload_fresh(two[of], piece, NULL, at, &err));
                for (size_t k = 0; k < BYTES; k++)
                    fresh[i][k] = x[k] = (uint8_t)dice(256);
                queue(NULL, (struct op){ .kind = COPY, .dst = at[0], .src = fresh[i], .n = BYTES });
                CHECK(!offload_done(two[of], piece, NULL, true, &err));
                continue;
            }
            CHECK(!offload_get(two[of], piece, NULL, at, &err));
            queue(NULL, (struct op){ .kind = COPY, .dst = seen, .src = at[0], .n = BYTES });
            CHECK(!lazy_wait(&device, NULL, &err));
            CHECK(!memcmp(seen, x, BYTES));
            CHECK(!offload_done(two[of], piece, NULL, false, &err));
            if (dice(20) == 0)
                CHECK(!offload_set_windows(two[0], 1 + dice(3), &err));
        }
        CHECK(gpu_allocated(&device).bytes <= 3 * 256);
        CHECK(!offload_rest(two[0], &err) && !offload_rest(two[1], &err));
        for (size_t i = 0; i < 2 * MOST; i++)
            CHECK(!memcmp(offload_piece_host(two[i % 2], i / 2), values[i % 2][i / 2], BYTES));
        offload_close(two[round % 2]);
        finish(two[1 - round % 2]);
    }
}

static void a_piece_without_host_memory_is_told(void)
{
    struct offload *b;
    make_device(true);
    CHECK(!offload_open_pieces(&device, 200, 3, NULL, &b, &err));
    CHECK(!offload_piece_open(b, 0, &err));
    fault_arm(1, ENOMEM);
    CHECK(offload_piece_open(b, 1, &err));
    fault_disarm();
    CHECK_INT(err.code, CAIRN_ELACK);
    CHECK(offload_piece_host(b, 0) && !offload_piece_host(b, 1));
    finish(b);
}

/* Values that are saved and come back; in smaller passes the rest of a piece stays where it is. */
static void only_the_used_part_is_copied(void)
{
    enum { MOST = 200, N = 5 };
    uint8_t whole[N][MOST];
    struct offload *b;
    make_device(false);
    CHECK(!offload_open_pieces(&device, MOST, N, NULL, &b, &err));
    for (size_t i = 0; i < N; i++)
        CHECK(!offload_piece_open(b, i, &err));
    for (size_t used = MOST; used > 0; used -= MOST / 2) {
        void *at[OFFLOAD_ARRAYS];
        offload_set_used(b, used);
        for (size_t i = 0; i < N; i++) {
            CHECK(!offload_fresh(b, i, NULL, at, &err));
            queue(NULL, (struct op){ .kind = WORK, .dst = at[0], .n = used, .nth = i });
            CHECK(!offload_done(b, i, NULL, true, &err));
        }
        CHECK(!offload_rest(b, &err));
        for (size_t i = 0; i < N; i++) {
            const uint8_t *home = offload_piece_host(b, i);
            if (used == MOST)
                memcpy(whole[i], home, MOST);
            CHECK(!memcmp(home + used, whole[i] + used, MOST - used));
            CHECK(!offload_get(b, i, NULL, at, &err));
            CHECK(!offload_done(b, i, NULL, false, &err));
            CHECK(!lazy_wait(&device, NULL, &err));
            CHECK(!memcmp(at[0], home, used));
        }
    }
    finish(b);
}

static void sizes_are_what_is_taken(void)
{
    struct offload *b = start(false);
    CHECK_INT(gpu_allocated(&device).bytes, 0);
    CHECK(!offload_ready(b, &err));
    CHECK_INT(gpu_allocated(&device).bytes, offload_device_bytes(arrays, ARRAYS));
    CHECK_INT(offload_device_bytes(arrays, ARRAYS), 3 * (256 + 256));
    CHECK_INT(offload_host_bytes(arrays, ARRAYS), 1536 + 768);
    CHECK_INT(offload_device_bytes(&(struct offload_array){ 100, 100 }, 1), 256);
    finish(b);
}

int main(void)
{
    RUN(any_order_gives_the_same);
    RUN(want_of_memory_is_the_host_s);
    RUN(there_and_back_sends_little);
    RUN(ahead_of_use_nothing_is_lost);
    RUN(failures_do_not_spoil);
    RUN(shared_windows_keep_them_apart);
    RUN(a_piece_without_host_memory_is_told);
    RUN(only_the_used_part_is_copied);
    RUN(sizes_are_what_is_taken);
    return check_done();
}
