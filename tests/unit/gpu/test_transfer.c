/* SPDX-License-Identifier: Apache-2.0
 * Bytes to a device and back: on the CPU, and on a HIP that is told what to do wrong. */
#include "os/fault.h"
#include "base/hash.h"
#include "check.h"
#include "gpu/transfer.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { MIB = 1 << 20, PIECE = 64 << 10 };

/* A device, and memory of it that is to hold what `from` holds. */
struct way {
    struct gpu *g;
    struct transfer *t;
    char *device, *from, *back;
    size_t n;
};

static void way_close(struct way *w)
{
    if (w->device)
        gpu_free(w->g, GPU_MEM_DEVICE, w->device);
    gpu_close(w->g);
    free(w->from);
    free(w->back);
}

static void way_open(struct way *w, const char *device, const char *told, size_t n)
{
    struct cairn_error err = { 0 };
    void *p = NULL;
    setenv("CAIRN_FAKE_HIP", told, 1);
    *w = (struct way){ .n = n, .from = malloc(n + 1), .back = calloc(1, n + 1) };
    for (size_t i = 0; i < n; i++)
        w->from[i] = (char)(i * 2654435761u >> 13);
    if (gpu_open(device, &w->g, &err) || gpu_alloc(w->g, GPU_MEM_DEVICE, n + 1, &p, &err)) {
        CHECK_FAIL_("%s: %s", told, err.msg);
        exit(1);
    }
    w->device = p;
    w->t = gpu_transfer(w->g);
}

static struct transfer_part whole(const struct way *w, transfer_move *move, void *memory)
{
    return (struct transfer_part){ .device = w->device, .bytes = w->n, .move = move, .context = memory };
}

static int go_up(struct way *w, const struct transfer_options *o, struct cairn_error *err)
{
    struct transfer_part part = whole(w, transfer_move_from, w->from);
    return transfer_up(w->t, &part, 1, o, err);
}

static int go_down(struct way *w, struct cairn_error *err)
{
    struct transfer_part part = whole(w, transfer_move_into, w->back);
    return transfer_down(w->t, &part, 1, NULL, err);
}

static uint64_t rungs(const struct way *w, enum transfer_rung rung)
{
    struct transfer_stats st;
    transfer_stats_get(w->t, &st);
    return st.rungs[rung];
}

/* What the device has, without the transfer. */
static void check_arrived(struct way *w)
{
    struct cairn_error err = { 0 };
    unsetenv("CAIRN_FAKE_HIP");
    CHECK(!gpu_download(w->g, NULL, w->back, w->device, w->n, &err) && !gpu_wait(w->g, NULL, &err));
    CHECK(!memcmp(w->from, w->back, w->n));
}

static void there_and_back(const char *device, const char *told, size_t n, bool direct)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    struct transfer_stats st;
    way_open(&w, device, told, n);
    transfer_set_ring(w.t, 3, PIECE);
    if (go_up(&w, NULL, &err) || go_down(&w, &err))
        CHECK_FAIL_("%s: %zu bytes: %s", told, n, err.msg);
    CHECK(!memcmp(w.from, w.back, n));
    transfer_stats_get(w.t, &st);
    CHECK_INT(st.up_bytes, n);
    CHECK_INT(st.down_bytes, n);
    CHECK_INT(st.direct, direct);
    bool ring = strcmp(device, "cpu") != 0; /* of shared memory for the way back */
    CHECK_INT(st.ring_bytes, !ring ? 0 : n > 2 * PIECE ? 3 * PIECE : n > PIECE ? 2 * PIECE : PIECE);
    for (int i = 0; i < TRANSFER_RUNGS; i++)
        CHECK_INT(st.rungs[i], 0);
    memset(w.back, 0, n);
    check_arrived(&w);
}

static const size_t sizes[] = { 1, 1000, PIECE, PIECE + 1, 5 * PIECE - 3, 3 * MIB + 7 };

static void every_size_on_a_gpu(void)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        there_and_back("hip:0", i % 2 ? "devices=1" : "late=1", sizes[i], false);
}

static void every_size_on_the_cpu(void)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        there_and_back("cpu", "devices=1", sizes[i], true);
}

static void shared_memory_needs_no_ring(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    struct transfer_stats st;
    way_open(&w, "hip:0", "unified=1", MIB);
    CHECK(!go_up(&w, &(struct transfer_options){ .verify = true }, &err));
    transfer_stats_get(w.t, &st);
    CHECK(st.direct && !st.ring_bytes && !st.copies);
    there_and_back("hip:0", "unified=1", 3 * MIB + 7, true);
}

static void shared_memory_that_cannot_be_touched_needs_one(void)
{
    there_and_back("hip:0", "unified=2", 3 * MIB + 7, false);
    setenv("CAIRN_TRANSFER", "staged", 1);
    there_and_back("hip:0", "unified=1", 3 * MIB + 7, false);
    unsetenv("CAIRN_TRANSFER");
}

static void nothing_is_no_error(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    way_open(&w, "hip:0", "devices=1", 0);
    CHECK(!go_up(&w, NULL, &err) && !go_down(&w, &err));
    CHECK(!transfer_up(w.t, NULL, 0, NULL, &err));
}

/* ---- parts ---- */

/* Parts of many sizes: neighbours, and with gaps that nobody may write to; units that must not be cut. */
enum { PARTS = 300 };
struct piece_of {
    const char *from;
    size_t unit, bytes;
    bool broken; /* it was cut otherwise */
};

static int move_unit(void *context, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    struct piece_of *p = context;
    bool last = at + n == p->bytes;
    if (at % p->unit || (n % p->unit && !last))
        __atomic_store_n(&p->broken, true, __ATOMIC_RELAXED);
    return transfer_move_from((void *)p->from, at, n, bytes, err);
}

static void many_parts_are_gathered(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    struct transfer_part parts[PARTS];
    struct piece_of of[PARTS];
    struct transfer_stats st;
    way_open(&w, "hip:0", "devices=1", 4 * MIB);
    transfer_set_ring(w.t, 3, PIECE);
    size_t at = 0, gaps = 0;
    CHECK(!gpu_clear(w.g, NULL, w.device, w.n, &err) && !gpu_wait(w.g, NULL, &err));
    char *want = calloc(1, w.n);
    for (size_t i = 0; i < PARTS; i++) {
        size_t unit = i % 5 == 0 ? 5000 : i % 5 == 1 ? PIECE : 2, bytes = 2 + i * 7919 % 20000 / 2 * 2;
        of[i] = (struct piece_of){ w.from + at, unit, bytes, false };
        parts[i] = (struct transfer_part){ w.device + at, bytes, unit, move_unit, &of[i], false };
        memcpy(want + at, w.from + at, bytes);
        at += bytes;
        if (i % 50 == 49)
            at += 10, gaps++;
    }
    CHECK(at < w.n);
    if (transfer_up(w.t, parts, PARTS, NULL, &err))
        CHECK_FAIL_("%s", err.msg);
    for (size_t i = 0; i < PARTS; i++)
        CHECK(!of[i].broken);
    transfer_stats_get(w.t, &st);
    CHECK(st.copies < PARTS / 2); /* by far not one for each */
    memcpy(w.from, want, w.n);
    free(want);
    check_arrived(&w);
}

static void a_unit_that_does_not_fit_is_refused(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    way_open(&w, "hip:0", "devices=1", MIB);
    transfer_set_ring(w.t, 3, PIECE * 4);
    struct transfer_part part = whole(&w, transfer_move_from, w.from);
    CHECK_INT(transfer_unit_most(w.t), PIECE * 4);
    part.unit = PIECE * 4 + 1;
    CHECK_INT(transfer_up(w.t, &part, 1, NULL, &err), -1);
    CHECK_INT(err.code, CAIRN_EUSAGE);
}

/* ---- what goes wrong ---- */

/* One failing call, wherever it is. */
static void with_a_fault(const char *call, bool down)
{
    for (int nth = 1; nth <= 40; nth++) {
        CLEANUP(way_close) struct way w;
        struct cairn_error err = { 0 };
        char told[96];
        way_open(&w, "hip:0", "devices=1", 10 * PIECE + 5);
        transfer_set_ring(w.t, 3, PIECE);
        CHECK(!down || !go_up(&w, NULL, &err));
        snprintf(told, sizeof(told), "fail=%s:%d:1", call, nth);
        setenv("CAIRN_FAKE_HIP", told, 1);
        int r = down ? go_down(&w, &err) : go_up(&w, NULL, &err);
        /* Before the first copy there is nothing to do again. */
        if (r && !(nth == 1 && !strcmp(call, "hipStreamSynchronize")))
            CHECK_FAIL_("%s: %s", told, err.msg);
        bool again = rungs(&w, TRANSFER_STEPS) > 0;
        if (again != (nth <= 11 && !r))
            CHECK_FAIL_("%s: again: %d", told, again);
        CHECK_INT(rungs(&w, TRANSFER_PIECES), 0);
        if (!r && down)
            CHECK(!memcmp(w.from, w.back, w.n));
        else if (!r)
            check_arrived(&w);
        if (nth > 11 && !again)
            break;
    }
}

static void a_copy_that_fails_is_done_again(void)
{
    with_a_fault("hipMemcpyHtoDAsync", false);
}

static void a_copy_back_that_fails_is_done_again(void)
{
    with_a_fault("hipMemcpyDtoHAsync", true);
}

static void a_wait_that_fails_is_a_copy_that_failed(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    way_open(&w, "hip:0", "devices=1", 10 * PIECE + 5);
    transfer_set_ring(w.t, 3, PIECE);
    setenv("CAIRN_FAKE_HIP", "fail=hipStreamSynchronize:4:1,late=1", 1);
    CHECK(!go_up(&w, NULL, &err));
    CHECK_INT(rungs(&w, TRANSFER_STEPS), 1);
    check_arrived(&w);
}

static void large_copies_that_fail_are_done_in_pieces(void)
{
    CLEANUP(way_close) struct way w;
    CLEANUP(str_release) struct str news = { 0 };
    struct cairn_error err = { 0 };
    way_open(&w, "hip:0", "copy=65536", 3 * MIB);
    transfer_set_ring(w.t, 3, MIB / 2);
    if (go_up(&w, NULL, &err) || go_down(&w, &err))
        CHECK_FAIL_("%s", err.msg);
    CHECK(!memcmp(w.from, w.back, w.n));
    CHECK_INT(rungs(&w, TRANSFER_REFUSED), 0);
    CHECK(rungs(&w, TRANSFER_STEPS) > 0 && rungs(&w, TRANSFER_PIECES) > 0);
    CHECK(transfer_news(w.t, &news));
    CHECK_HAS(news.s, "(hip:0: copy 524288 bytes to the device");
    CHECK(transfer_news(w.t, &news));
    CHECK_HAS(news.s, "in small pieces");
    CHECK(!transfer_news(w.t, &news)); /* once */
    check_arrived(&w);
}

static void a_copy_that_is_refused_is_an_error_of_the_device(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    way_open(&w, "hip:0", "copy=1000", 20000);
    struct transfer_part parts[] = {
        { .device = w.device, .bytes = 1000, .move = transfer_move_from, .context = w.from },
        { .device = w.device + 1500, .bytes = 1001, .move = transfer_move_from, .context = w.from },
    };
    CHECK_INT(transfer_up(w.t, parts, 2, NULL, &err), -1);
    CHECK_INT(err.code, CAIRN_EDEVICE);
    CHECK_INT(rungs(&w, TRANSFER_REFUSED), 1);
    CHECK_HAS(err.msg, "hip:0: copy 1001 bytes to the device");
    CHECK(!transfer_up(w.t, parts, 1, NULL, &err)); /* the other one may go on */
}

static void a_lost_device_is_not_asked_again(void)
{
    fflush(stdout);
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    way_open(&w, "hip:0", "devices=1", MIB);
    setenv("CAIRN_FAKE_HIP", "fail=hipMemcpyHtoDAsync:1:700", 1);
    CHECK_INT(go_up(&w, NULL, &err), -1);
    CHECK(gpu_lost(w.g) && err.code == CAIRN_EDEVICE);
    CHECK_INT(rungs(&w, TRANSFER_REFUSED), 0);
    CHECK_INT(rungs(&w, TRANSFER_STEPS), 0);
}

static void less_pinned_memory_is_enough(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    struct transfer_stats st;
    way_open(&w, "hip:0", "pinned=10000000", 50 * MIB);
    CHECK(!go_up(&w, NULL, &err));
    transfer_stats_get(w.t, &st);
    CHECK_INT(st.ring_bytes, 8 * MIB);
    CHECK(st.rungs[TRANSFER_SMALL_RING] > 0);
    CHECK_INT(st.rungs[TRANSFER_PAGEABLE], 0);
    check_arrived(&w);
}

static void no_pinned_memory_is_slower(void)
{
    CLEANUP(way_close) struct way w;
    CLEANUP(str_release) struct str news = { 0 };
    struct cairn_error err = { 0 };
    way_open(&w, "hip:0", "pinned=1", 9 * MIB);
    CHECK(!go_up(&w, NULL, &err) && !go_down(&w, &err));
    CHECK(!memcmp(w.from, w.back, w.n));
    CHECK_INT(rungs(&w, TRANSFER_PAGEABLE), 1);
    CHECK(transfer_news(w.t, &news));
    CHECK_HAS(news.s, "(hip:0: allocate");
    check_arrived(&w);
}

static void what_arrives_changed_is_found_if_asked_for(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    struct transfer_options o = { .verify = true };
    struct transfer_stats st;
    struct hash h;
    uint64_t sum[2];
    way_open(&w, "hip:0", "spoil=hipMemcpyHtoDAsync:3", 10 * PIECE);
    transfer_set_ring(w.t, 3, PIECE);
    CHECK(!go_up(&w, &o, &err));
    CHECK_INT(rungs(&w, TRANSFER_STEPS), 1);
    hash_init(&h);
    hash_add(&h, w.from, w.n);
    hash_end(&h, sum);
    transfer_stats_get(w.t, &st);
    CHECK_INT(st.verified_bytes, w.n);
    CHECK(sum[0] == st.verified_hash[0] && sum[1] == st.verified_hash[1]);
    check_arrived(&w);
    setenv("CAIRN_FAKE_HIP", "spoil=hipMemcpyHtoDAsync:4", 1);
    CHECK(!go_up(&w, NULL, &err)); /* nobody looked */
    CHECK_INT(rungs(&w, TRANSFER_STEPS), 1);
    setenv("CAIRN_FAKE_HIP", "devices=1", 1);
    CHECK(!gpu_set_debug(w.g, &err));
    setenv("CAIRN_FAKE_HIP", "spoil=hipMemcpyHtoDAsync:5", 1);
    CHECK(!go_up(&w, NULL, &err)); /* while debugging it is always looked */
    CHECK_INT(rungs(&w, TRANSFER_STEPS), 2);
    check_arrived(&w);
}

/* ---- the caller's side ---- */

static int fail_at(void *at_which, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    uint64_t which = *(uint64_t *)at_which;
    memset(bytes, 0, n);
    if (at >= which)
        return cairn_fail(err, CAIRN_EFORMAT, "byte %llu", (unsigned long long)at);
    return 0;
}

static void the_first_error_of_the_threads_is_told(void)
{
    static const char *const devices[] = { "hip:0", "cpu" };
    for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
        CLEANUP(way_close) struct way w;
        struct cairn_error err = { 0 };
        uint64_t which = 7 * MIB;
        way_open(&w, devices[i], "devices=1", 20 * MIB);
        transfer_set_ring(w.t, 2, MIB);
        struct transfer_part part = whole(&w, fail_at, &which);
        struct transfer_options o = { .threads = 8 };
        CHECK_INT(transfer_up(w.t, &part, 1, &o, &err), -1);
        CHECK_STR(err.msg, "byte 7340032");
        CHECK(err.code != CAIRN_EDEVICE);
        CHECK(!go_up(&w, NULL, &err)); /* and then it works again */
        check_arrived(&w);
    }
}

struct told {
    uint64_t last, total;
    int times;
    bool backwards;
    volatile sig_atomic_t stop;
    uint64_t stop_at;
};

static void tell(void *to, uint64_t done, uint64_t total)
{
    struct told *t = to;
    t->backwards |= done <= t->last;
    t->last = done;
    t->total = total;
    t->times++;
    t->stop = done >= t->stop_at;
}

static void progress_is_told_and_a_stop_obeyed(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    struct told all = { .stop_at = UINT64_MAX }, some = { .stop_at = 3 * MIB };
    way_open(&w, "hip:0", "devices=1", 40 * MIB);
    transfer_set_ring(w.t, 2, MIB);
    CHECK(!go_up(&w, &(struct transfer_options){ .progress = tell, .to = &all, .stop = &all.stop }, &err));
    CHECK_INT(all.times, 40);
    CHECK(!all.backwards && all.last == w.n && all.total == w.n);
    CHECK_INT(
        go_up(&w, &(struct transfer_options){ .progress = tell, .to = &some, .stop = &some.stop }, &err), -1);
    CHECK_STR(err.msg, "interrupted");
    CHECK(some.last >= 3 * MIB && some.last < 10 * MIB);
}

static void calls_for_the_same_work_share_a_bar(void)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    struct told told = { .stop_at = UINT64_MAX };
    way_open(&w, "hip:0", "devices=1", 4 * MIB);
    for (int i = 0; i < 3; i++) {
        struct transfer_options o = {
            .progress = tell, .to = &told, .before = (uint64_t)i * w.n, .all = 3 * w.n
        };
        CHECK(!go_up(&w, &o, &err));
        CHECK(!told.backwards && told.last == (uint64_t)(i + 1) * w.n && told.total == 3 * w.n);
    }
}

/* The nth outside call fails, for every n: the bytes are there, or an error is told. */
static void fail_each_call(const char *told, int least)
{
    bool reached = true;
    int nth = 0;
    while (reached) {
        CLEANUP(way_close) struct way w;
        struct cairn_error err = { 0 };
        way_open(&w, "hip:0", told, 5 * PIECE);
        transfer_set_ring(w.t, 3, PIECE);
        fault_arm(++nth, EIO);
        int r = go_up(&w, NULL, &err) || go_down(&w, &err);
        reached = fault_disarm();
        if (r ? !reached || !err.msg[0] : memcmp(w.from, w.back, w.n) != 0)
            CHECK_FAIL_("%s: call %d: \"%s\"", told, nth, err.msg);
    }
    CHECK(nth > least);
}

static void every_call_may_fail_once(void)
{
    fail_each_call("devices=1", 20);
    fail_each_call("unified=1", 5);
}

/* ---- any way ---- */

static uint64_t seed = 1;

static size_t dice(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

/* Parts of any size in any order with gaps between them, on a device that may fail once. */
static void one_way(size_t round)
{
    CLEANUP(way_close) struct way w;
    struct cairn_error err = { 0 };
    struct transfer_part parts[24];
    char told[96] = "devices=1", *want;
    size_t n = 1 + dice(ARRAY_LEN(parts)), at = 0;
    way_open(&w, "hip:0", told, MIB);
    transfer_set_ring(w.t, 1 + dice(5), PIECE >> dice(5));
    want = calloc(1, w.n);
    CHECK(!gpu_clear(w.g, NULL, w.device, w.n, &err) && !gpu_wait(w.g, NULL, &err));
    for (size_t i = 0; i < n; i++) {
        at += dice(3) ? 0 : dice(700);
        size_t bytes = dice(4) ? dice(3000) : dice(w.n / 32);
        parts[i] = (struct transfer_part){ w.device + at,      bytes,       1 + dice(1 + dice(4000)),
                                           transfer_move_from, w.from + at, false };
        memcpy(want + at, w.from + at, bytes);
        at += bytes;
    }
    for (size_t i = 0; i < n; i++) {
        size_t k = dice(n);
        struct transfer_part other = parts[i];
        parts[i] = parts[k];
        parts[k] = other;
    }
    static const char *const calls[] = { "hipMemcpyHtoDAsync", "hipStreamSynchronize", "hipHostMalloc" };
    if (dice(2))
        snprintf(told, sizeof(told), "fail=%s:%zu:1,late=1,round=%zu", calls[dice(3)], 2 + dice(20), round);
    struct transfer_options o = { .threads = (int)(1 + dice(6)), .verify = !dice(4) };
    setenv("CAIRN_FAKE_HIP", told, 1);
    if (transfer_up(w.t, parts, n, &o, &err))
        CHECK_FAIL_("round %zu: %s: %s", round, told, err.msg);
    setenv("CAIRN_FAKE_HIP", "devices=1", 1);
    memcpy(w.from, want, w.n);
    free(want);
    check_arrived(&w);
    memset(w.back, 0, w.n);
    for (size_t i = 0; i < n; i++) {
        parts[i].move = transfer_move_into;
        parts[i].context = w.back + ((char *)parts[i].device - w.device);
    }
    CHECK(!transfer_down(w.t, parts, n, &o, &err));
    CHECK(!memcmp(w.back, w.from, w.n));
}

static void any_parts_in_any_ring(void)
{
    for (size_t i = 0; i < 150; i++)
        one_way(i);
}

/* Parts that stay on the host go the way of the others, and are not the device's business. */
static void parts_may_be_on_the_host(void)
{
    struct cairn_error err = { 0 };
    struct way w;
    way_open(&w, "hip:0", "", 3 * MIB);
    char *home = calloc(1, w.n);
    struct transfer_part parts[] = { whole(&w, transfer_move_from, w.from),
                                     whole(&w, transfer_move_from, w.from) };
    parts[0].device = home;
    parts[0].on_host = true;
    CHECK(!transfer_up(w.t, parts, 2, NULL, &err) && !memcmp(home, w.from, w.n));
    CHECK(!go_down(&w, &err) && !memcmp(w.back, w.from, w.n));
    memset(home, 7, w.n);
    parts[0].move = parts[1].move = transfer_move_into;
    parts[0].context = parts[1].context = w.back;
    CHECK(!transfer_down(w.t, parts, 1, NULL, &err) && w.back[0] == 7 && !memcmp(w.back, home, w.n));
    free(home);
    way_close(&w);
}

int main(void)
{
    RUN(every_size_on_a_gpu);
    RUN(every_size_on_the_cpu);
    RUN(shared_memory_needs_no_ring);
    RUN(shared_memory_that_cannot_be_touched_needs_one);
    RUN(nothing_is_no_error);
    RUN(many_parts_are_gathered);
    RUN(a_unit_that_does_not_fit_is_refused);
    RUN(a_copy_that_fails_is_done_again);
    RUN(a_copy_back_that_fails_is_done_again);
    RUN(a_wait_that_fails_is_a_copy_that_failed);
    RUN(large_copies_that_fail_are_done_in_pieces);
    RUN(a_copy_that_is_refused_is_an_error_of_the_device);
    RUN(less_pinned_memory_is_enough);
    RUN(no_pinned_memory_is_slower);
    RUN(what_arrives_changed_is_found_if_asked_for);
    RUN(the_first_error_of_the_threads_is_told);
    RUN(progress_is_told_and_a_stop_obeyed);
    RUN(calls_for_the_same_work_share_a_bar);
    RUN(parts_may_be_on_the_host);
    RUN(every_call_may_fail_once);
    RUN(any_parts_in_any_ring);
    RUN(a_lost_device_is_not_asked_again); /* the last: it stays lost */
    return check_done();
}
