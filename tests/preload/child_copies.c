/* SPDX-License-Identifier: Apache-2.0
 * The words of the program child that are about copies. */
#include "child.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int stream_a, stream_b, stream_other = 1; /* their devices */

/* A model of three tensors, each mapped in another way. */
void do_load(void)
{
    char *d = device(BIG), *plain = filled(malloc(BIG), BIG, 3);
    printf("%d", t->hipMemcpyWithStream(d, mapped(BIG, PROT_READ, 1), BIG, H2D, &stream_a));
    printf(" %d", arrived(d, BIG, 1));
    printf(" %d", t->hipMemcpy(d, mapped(BIG, PROT_READ | PROT_WRITE, 2), BIG, H2D));
    printf(" %d", arrived(d, BIG, 2));
    printf(" %d", t->hipMemcpyAsync(d, plain, BIG, H2D, &stream_b));
    filled(plain, BIG, 99); /* the source has been read */
    t->hipStreamSynchronize(&stream_b);
    printf(" %d", arrived(d, BIG, 3));
    printf(" %d", t->hipMemcpyHtoD(d, filled(plain, BIG, 4), BIG));
    printf(" %d", arrived(d, BIG, 4));
    printf(" last %d pinned %zu\n", t->hipGetLastError(), t->fake_pinned_for_copy());
}

/* In the order of the stream: device a to pinned memory, and from there to device b. */
static void by_way_of(char *host)
{
    char *a = device(BIG), *b = device(BIG), *source = filled(malloc(BIG), BIG, 5);
    t->hipMemcpy(a, source, BIG, H2D);
    t->hipMemcpyAsync(host, a, BIG, D2H, &stream_a);
    t->hipMemcpyAsync(b, host, BIG, H2D, &stream_a);
    t->hipStreamSynchronize(&stream_a);
    printf("%d\n", arrived(b, BIG, 5));
    free(source);
}

static void do_order(void)
{
    void *pinned = NULL;
    char *quiet = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *registered = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    t->hipHostMalloc(&pinned, BIG, 0);
    by_way_of(pinned);
    t->hipHostRegister(registered, BIG, 0);
    by_way_of(registered);
    t->fake_pin_quietly(quiet, BIG);
    by_way_of(quiet);
}

/* What no copy can do: the answers are those of the runtime. */
static void do_bad(void)
{
    char *d = device(BIG), *e = device(BIG), *small = device(MIB);
    char *gone = mmap(NULL, BIG, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *source = filled(malloc(BIG), BIG, 6);
    munmap(gone, BIG);
    printf("%d", t->hipMemcpy(d, gone, BIG, H2D));
    printf(" last %d", t->hipGetLastError());
    printf(" %d", t->hipMemcpy(small, source, BIG, H2D)); /* more than there is room for */
    printf(" last %d", t->hipGetLastError());
    printf(" %d", t->hipMemcpy(d, source, BIG, H2D));
    printf(" %d", t->hipMemcpy(e, d, BIG, H2D)); /* a device's memory, whatever the word says */
    printf(" %d", arrived(e, BIG, 6));
    printf(" %d", t->hipMemcpy(NULL, NULL, 0, H2D));
    printf(" last %d\n", t->hipGetLastError());
}

/* Too long for its place, with room behind that is somebody else's. */
static void do_neighbour(void)
{
    char *source = filled(malloc(2 * MIB), 2 * MIB, 9);
    char *small = device(MIB), *behind = device(2 * MIB);
    t->hipMemcpy(behind, source, 2 * MIB, H2D);
    printf("%d %d", small + MIB == behind, t->hipMemcpy(small, filled(source, 2 * MIB, 10), 2 * MIB, H2D));
    printf(" %d", t->hipMemcpy(source, small, 2 * MIB, D2H));
    printf(" %d", arrived(behind, 2 * MIB, 9));
    printf(" last %d\n", t->hipGetLastError());
}

/* So long that the end of either side is before its beginning. */
static void do_wraps(void)
{
    char *source = filled(malloc(4 * MIB), 4 * MIB, 24), *a = device(2 * MIB), *b = device(2 * MIB);
    t->hipMemcpy(b, source, 2 * MIB, H2D);
    filled(source, 4 * MIB, 25);
    printf("%d", t->hipMemcpy(a + MIB, source, (size_t)0 - 4096, H2D));
    printf(" %d", t->hipMemcpy(source, a + MIB, (size_t)0 - 4096, D2H));
    printf(" last %d", t->hipGetLastError());
    printf(" %d\n", arrived(b, 2 * MIB, 24));
}

static void *wait_for_ever(void *context)
{
    char *d = device(MIB);
    t->hipMemcpyWithStream(d, mapped(MIB, PROT_READ, 1), MIB, H2D, &stream_b);
    return context;
}

/* One thread waits for a stream that never comes to rest, another one copies. */
static void beside_a_stuck_thread(void)
{
    pthread_t thread;
    char *d = device(MIB);
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    usleep(100000);
    alarm(10);
    printf("%d", t->hipMemcpyAsync(d, mapped(MIB, PROT_READ, 2), MIB, H2D, &stream_a));
    printf(" %d\n", arrived(d, MIB, 2));
}

static void do_stuck(void)
{
    t->fake_break_stream(&stream_b, 0);
    beside_a_stuck_thread();
}

/* It stops in the middle of the copy. */
static void do_stuck_inside(void)
{
    t->fake_stick_soon(&stream_b);
    beside_a_stuck_thread();
}

/* Short copies for a stream that goes on only when they are called: two more than there are buffers. */
static void do_ahead(void)
{
    enum { COPIES = 18 };
    char *d[COPIES], *source = malloc(MIB);
    int bad = 0, good = 0;
    alarm(30);
    t->fake_break_stream(&stream_b, 0);
    for (unsigned i = 0; i < COPIES; i++)
        bad |= t->hipMemcpyAsync(d[i] = device(MIB), filled(source, MIB, i), MIB, H2D, &stream_b);
    printf("%d pinned %zu", bad, t->fake_pinned_for_copy());
    filled(source, MIB, 99);
    t->fake_break_stream(NULL, 0);
    t->hipStreamSynchronize(&stream_b);
    for (unsigned i = 0; i < COPIES; i++)
        good += arrived(d[i], MIB, i);
    printf(" %d %d", good, t->hipMemcpyAsync(d[0], filled(source, MIB, 17), MIB, H2D, &stream_b));
    t->hipStreamSynchronize(&stream_b);
    printf(" %d last %d\n", arrived(d[0], MIB, 17), t->hipGetLastError());
}

/* As many as a program may give a stream to do without waiting. */
static void do_run_ahead(void)
{
    enum { COPIES = 40, N = 1000000 };
    char *d[COPIES], *source = malloc(N);
    int bad = 0, good = 0;
    for (unsigned i = 0; i < COPIES; i++)
        bad |= t->hipMemcpyAsync(d[i] = device(N), filled(source, N, i), N, H2D, &stream_a);
    t->hipStreamSynchronize(&stream_a);
    for (unsigned i = 0; i < COPIES; i++)
        good += arrived(d[i], N, i);
    printf("%d %d pinned %zu\n", bad, good, t->fake_pinned_for_copy());
}

static char *to_be_written;

/* What the stream has to do before the copy writes its source. */
static void *write_source(void *context)
{
    usleep(100000);
    filled(to_be_written, *(const size_t *)context, 23);
    t->fake_break_stream(NULL, 0);
    return NULL;
}

static void copy_what_is_written_first(size_t n)
{
    pthread_t thread;
    char *d = device(n), *source = filled(malloc(n), n, 22);
    alarm(30);
    to_be_written = source;
    t->fake_break_stream(&stream_b, 0);
    pthread_create(&thread, NULL, write_source, &n);
    printf("%d", t->hipMemcpyAsync(d, source, n, H2D, &stream_b));
    pthread_join(thread, NULL);
    t->hipStreamSynchronize(&stream_b);
    printf(" %d\n", arrived(d, n, 23));
}

static void do_written_first(void)
{
    copy_what_is_written_first(BIG);
}

static void do_written_first_short(void)
{
    copy_what_is_written_first(MIB);
}

/* Another thread begins to capture when it has been looked whether one does. */
static void do_capture_between(void)
{
    void *graph;
    char *d = device(BIG), *source = filled(malloc(BIG), BIG, 18);
    t->fake_capture_soon(&stream_a);
    printf("%d", t->hipMemcpyAsync(d, source, BIG, H2D, &stream_b));
    printf(" %d", t->hipStreamEndCapture(&stream_a, &graph));
    t->hipStreamSynchronize(&stream_b);
    printf(" %d", arrived(d, BIG, 18));
    t->fake_capture_soon(&stream_a);
    printf(" %d", t->hipMemcpyWithStream(d, filled(source, BIG, 19), BIG, H2D, &stream_b));
    printf(" %d", t->hipStreamEndCapture(&stream_a, &graph));
    printf(" %d pinned %zu\n", arrived(d, BIG, 19), t->fake_pinned_for_copy());
}

/* Pinned memory is there again after a while. */
static void do_later(void)
{
    char *d = device(MIB), *source = filled(malloc(MIB), MIB, 20);
    for (int i = 0; i < 9; i++) {
        printf("%d", t->hipMemcpy(d, source, MIB, H2D));
        printf(" pinned %zu ", t->fake_pinned_for_copy());
    }
    printf("last %d\n", t->hipGetLastError());
}

/* The program has an error that it has not asked for yet. */
static void do_pending(void)
{
    char *d = device(BIG), *small = device(MIB), *source = filled(malloc(BIG), BIG, 21);
    printf("%d", t->hipMemcpy(small, source, BIG, H2D));
    printf(" %d", t->hipMemcpy(d, source, BIG, H2D));
    printf(" last %d", t->hipGetLastError());
    printf(" %d", t->hipMemcpy(d, source, BIG, H2D));
    printf(" last %d\n", t->hipGetLastError());
}

/* A kernel has failed, and the wait says so. */
static void do_failed_stream(void)
{
    char *d = device(MIB);
    t->fake_break_stream(&stream_b, 719);
    printf("%d", t->hipMemcpyAsync(d, mapped(MIB, PROT_READ, 2), MIB, H2D, &stream_b));
    printf(" last %d", t->hipGetLastError());
    printf(" %d", t->hipMemcpyWithStream(d, mapped(MIB, PROT_READ, 2), MIB, H2D, &stream_b));
    printf(" last %d\n", t->hipGetLastError());
}

static void do_reset(void)
{
    char *source = filled(malloc(BIG), BIG, 11), *d = device(BIG);
    printf("%d", t->hipMemcpy(d, source, BIG, H2D));
    printf(" %d", t->hipDeviceReset());
    d = device(BIG);
    printf(" %d", t->hipMemcpy(d, source, BIG, H2D));
    printf(" %d\n", arrived(d, BIG, 11));
}

/* A range of addresses with two pieces of memory behind; the number of one looks like a place in the source. */
static void do_map(void)
{
    char *source = filled(malloc(4 * MIB), 4 * MIB, 12);
    void *p = NULL, *a = NULL, *b = NULL;
    t->hipMemAddressReserve(&p, 4 * MIB, 0, NULL, 0);
    t->hipMemCreate(&a, 2 * MIB, source, 0);
    t->hipMemCreate(&b, 2 * MIB, (void *)1, 0);
    printf("%d", t->hipMemMap(p, 2 * MIB, 0, a, 0));
    printf(" %d", t->hipMemMap((char *)p + 2 * MIB, 2 * MIB, 0, b, 0));
    printf(" %d", t->hipMemcpy(p, source, 4 * MIB, H2D));
    printf(" %d", arrived(p, 4 * MIB, 12));
    printf(" %d", t->hipMemUnmap(p, 4 * MIB));
    printf(" %d\n", t->hipMemcpy(p, source, 4 * MIB, H2D));
}

/* Captures that do not begin, or end without having begun. */
static void do_odd_capture(void)
{
    void *graph;
    char *d = device(BIG), *source = filled(malloc(BIG), BIG, 13);
    printf("%d", t->hipStreamBeginCapture(&stream_a, BAD_MODE));
    printf(" last %d", t->hipGetLastError());
    printf(" %d", t->hipMemcpyAsync(d, source, BIG, H2D, &stream_b));
    printf(" pinned %zu", t->fake_pinned_for_copy());
    printf(" %d", t->hipStreamEndCapture(&stream_b, &graph));
    printf(" %d", t->hipStreamBeginCaptureToGraph(&stream_a, NULL, NULL, NULL, 0, 0));
    printf(" %d", t->hipStreamEndCapture(&stream_b, &graph));
    printf(" %d", t->hipMemcpyAsync(d, source, BIG, H2D, &stream_b));
    printf(" pinned %zu", t->fake_pinned_for_copy());
    printf(" %d\n", t->hipStreamEndCapture(&stream_a, &graph));
}

/* It is gone with its stream, once that is gone. */
static void do_destroyed_capture(void)
{
    char *d = device(BIG), *source = filled(malloc(BIG), BIG, 26);
    t->hipStreamBeginCapture(&stream_a, 0);
    for (int i = 0; i < 2; i++) {
        printf("%d", t->hipStreamDestroy(&stream_a));
        t->hipGetLastError();
        printf(" %d", t->hipMemcpyAsync(d, source, BIG, H2D, &stream_b));
        printf(" pinned %zu%s", t->fake_pinned_for_copy(), i ? "\n" : " ");
    }
}

/* Either function gives back what the other's twin took. */
static void do_freed_otherwise(void)
{
    void *pinned = NULL;
    char *d = device(BIG);
    t->hipHostMalloc(&pinned, BIG, 0);
    filled(pinned, BIG, 27);
    printf("%d", t->hipFree(pinned));
    printf(" %d", t->hipMemcpy(d, pinned, BIG, H2D));
    printf(" %d pinned %zu", arrived(d, BIG, 27), t->fake_pinned_for_copy());
    printf(" %d", t->hipHostFree(d));
    printf(" %zu\n", free_mib());
}

static void do_capture(void)
{
    void *graph;
    void *pinned = NULL;
    char *d = device(BIG), *source = filled(malloc(BIG), BIG, 7);
    t->hipHostMalloc(&pinned, BIG, 0);
    t->hipStreamBeginCapture(&stream_a, 0);
    printf("%d", t->hipMemcpyAsync(d, pinned, BIG, H2D, &stream_a));
    printf(" %d", t->hipStreamEndCapture(&stream_a, &graph));
    t->hipStreamBeginCapture(&stream_a, 0);
    printf(" %d", t->hipMemcpyAsync(d, source, BIG, H2D, &stream_b));
    printf(" %d", t->hipStreamEndCapture(&stream_a, &graph));
    printf(" pinned %zu", t->fake_pinned_for_copy()); /* another stream is captured: left to the runtime */
    printf(" %d", t->hipMemcpyAsync(d, source, BIG, H2D, &stream_b));
    printf(" pinned %zu\n", t->fake_pinned_for_copy());
}

/* By turns in two streams, with and without waiting; odd seeds have another device. */
static void *copy_often(void *context)
{
    unsigned seed = (unsigned)(size_t)context;
    size_t n = seed % 3 ? 300000 : 3 * MIB / 2;
    char *d = device(n), *source = malloc(n);
    size_t good = 0;
    t->hipSetDevice(seed % 2);
    for (unsigned i = 0; i < 20; i++) {
        void *stream = seed % 2 ? &stream_other : i % 2 ? &stream_a : &stream_b;
        filled(source, n, seed + i);
        int code = i % 3 ? t->hipMemcpyWithStream(d, source, n, H2D, stream)
                         : t->hipMemcpyAsync(d, source, n, H2D, stream);
        filled(source, 1000, 0);
        t->hipStreamSynchronize(stream);
        good += !code && arrived(d, n, seed + i);
    }
    return (void *)good;
}

/* More than there are buffers. */
static void do_threads(void)
{
    enum { THREADS = 20 };
    pthread_t threads[THREADS];
    size_t good = 0;
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, copy_often, (void *)(i * 1001));
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        good += (size_t)result;
    }
    printf("%zu\n", good);
}

const struct word copy_words[N_COPY_WORDS] = {
    { "load", do_load },
    { "order", do_order },
    { "bad", do_bad },
    { "capture", do_capture },
    { "threads", do_threads },
    { "neighbour", do_neighbour },
    { "stuck", do_stuck },
    { "stuck-inside", do_stuck_inside },
    { "ahead", do_ahead },
    { "run-ahead", do_run_ahead },
    { "written-first", do_written_first },
    { "written-first-short", do_written_first_short },
    { "wraps", do_wraps },
    { "capture-between", do_capture_between },
    { "later", do_later },
    { "pending", do_pending },
    { "failed-stream", do_failed_stream },
    { "reset", do_reset },
    { "map", do_map },
    { "odd-capture", do_odd_capture },
    { "destroyed-capture", do_destroyed_capture },
    { "freed-otherwise", do_freed_otherwise },
};
