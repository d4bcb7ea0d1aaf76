/* SPDX-License-Identifier: Apache-2.0
 * The words of the program child that are about the memory of a device. */
#include "child.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int stream_a;

static void do_allocate(void)
{
    void *a = &a, *b = NULL, *c = NULL, *d = NULL;
    printf("%d", t->hipMalloc(&a, 40 * MIB));
    printf(" %d", t->hipMallocAsync(&b, 40 * MIB, NULL));
    printf(" %d", t->hipMemCreate(&c, 40 * MIB, NULL, 0));
    printf(" %d", t->hipMalloc(&d, 4096));
    printf(" last %d", t->hipGetLastError());
    printf("%s\n", a ? "" : " nowhere");
}

static void do_figures(void)
{
    size_t free_bytes, total, at_256, at_288;
    char old[792], new[1472];
    char *p = device(64 * MIB);
    t->hipMemGetInfo(&free_bytes, &total);
    printf("%zu %zu", free_bytes >> 20, total >> 20);
    t->hipFree(p);
    t->hipMemGetInfo(&free_bytes, &total);
    printf(" %zu", free_bytes >> 20);
    t->hipDeviceTotalMem(&total, 0);
    t->hipGetDeviceProperties(old, 0);
    t->hipGetDevicePropertiesR0600(new, 0);
    memcpy(&at_256, old + 256, 8);
    memcpy(&at_288, new + 288, 8);
    printf(" %zu %zu %zu", total >> 20, at_256 >> 20, at_288 >> 20);
    printf(" %x %x %x %x\n", old[255], old[264], new[287], new[296]);
}

static void host_has(long mib)
{
    FILE *f = fopen(getenv("CAIRN_PRELOAD_MEMINFO"), "w");
    fprintf(f, "MemTotal: %d kB\nMemAvailable: %ld kB\n", 1000 << 10, mib << 10);
    fclose(f);
}

size_t free_mib(void)
{
    size_t free_bytes, total;
    t->hipMemGetInfo(&free_bytes, &total);
    return free_bytes >> 20;
}

/* What the host has changes under our hands. */
static void do_moment(void)
{
    void *p = NULL, *big = NULL;
    host_has(300);
    printf("%zu", free_mib());
    host_has(250);
    t->hipMalloc(&p, 4096);
    printf(" %zu", free_mib());
    host_has(260);
    t->hipFree(p);
    printf(" %zu", free_mib());
    host_has(270);
    usleep(50000);
    printf(" %zu", free_mib());
    host_has(280);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        printf(" child %zu", free_mib());
        fflush(stdout);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    host_has(230);
    printf(" %d", t->hipMalloc(&big, 40 * MIB));
    host_has(250);
    printf(" %d\n", t->hipMalloc(&big, 40 * MIB));
}

static void *take_some(void *start)
{
    void *p = NULL;
    pthread_barrier_wait(start);
    return (void *)(size_t)!t->hipMalloc(&p, 40 * MIB);
}

/* All threads ask before one of them has got anything. */
static void do_at_once(void)
{
    pthread_t threads[4];
    pthread_barrier_t start;
    size_t good = 0;
    pthread_barrier_init(&start, NULL, 4);
    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, take_some, &start);
    for (size_t i = 0; i < 4; i++) {
        void *got;
        pthread_join(threads[i], &got);
        good += (size_t)got;
    }
    printf("%zu\n", good);
}

static void *take_later(void *context)
{
    void *p = NULL;
    t->hipMalloc(&p, 80 * MIB);
    return context;
}

/* Another thread's allocation, which the host's figure has already, takes its time. */
static void do_in_turn(void)
{
    pthread_t thread;
    void *p = NULL;
    pthread_create(&thread, NULL, take_later, NULL);
    usleep(100000);
    printf("%d", t->hipMalloc(&p, 40 * MIB));
    printf(" %d\n", t->hipMalloc(&p, 40 * MIB));
}

/* It does not come back from there. */
static void do_cancelled_take(void)
{
    pthread_t thread;
    void *p = NULL;
    pthread_create(&thread, NULL, take_later, NULL);
    usleep(100000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    printf("%d\n", t->hipMalloc(&p, 40 * MIB));
}

static int take_pooled(void **p, size_t n, void *pool)
{
    return pool ? t->hipMallocFromPoolAsync(p, n, pool, &stream_a) : t->hipMallocAsync(p, n, &stream_a);
}

/* The same again and again; then more than any piece that the pool has, though not more than all of them. */
static void use_pool(void *pool)
{
    void *a = NULL, *b = NULL;
    for (int i = 0; i < 3; i++) {
        printf("%d ", take_pooled(&a, 30 * MIB, pool));
        t->hipFreeAsync(a, &stream_a);
    }
    take_pooled(&a, 10 * MIB, pool);
    take_pooled(&b, 10 * MIB, pool);
    t->hipFreeAsync(a, &stream_a);
    t->hipFreeAsync(b, &stream_a);
    printf("%d", take_pooled(&a, 40 * MIB, pool));
    printf(" %d", take_pooled(&b, 40 * MIB, pool));
    printf(" last %d\n", t->hipGetLastError());
}

static void do_pool(void)
{
    use_pool(NULL);
}

static void do_own_pool(void)
{
    void *pool = NULL;
    t->hipDeviceGetMemPool(&pool, 0);
    use_pool(pool);
}

/* What is only noted for a graph takes nothing yet. */
static void do_graph_pool(void)
{
    void *p = NULL, *graph;
    t->hipStreamBeginCapture(&stream_a, 0);
    printf("%d", t->hipMallocAsync(&p, 40 * MIB, &stream_a));
    printf(" %d", t->hipStreamEndCapture(&stream_a, &graph));
    printf(" %d", t->hipMallocAsync(&p, 40 * MIB, &stream_a));
    printf(" last %d\n", t->hipGetLastError());
}

/* Other ways to take memory of the device. */
static void do_allocate_more(void)
{
    void *a = NULL, *b = NULL;
    size_t pitch;
    struct pitched c = { 0 };
    printf("%d", t->hipMallocPitch(&a, &pitch, MIB - 100, 40));
    printf(" %d", t->hipMalloc3D(&c, (struct extent){ MIB - 100, 4, 10 }));
    printf(" %d", t->hipMallocFromPoolAsync(&b, 40 * MIB, NULL, NULL));
    printf(" last %d", t->hipGetLastError());
    printf("%s %zu\n", a || b || c.at ? "" : " nowhere", free_mib());
}

/* As one does it: the handle is released as soon as it is mapped.  It has two places in the end. */
static void do_handles(void)
{
    void *p = NULL, *h = NULL;
    t->hipMemAddressReserve(&p, 256 * (size_t)MIB, 0, NULL, 0);
    t->hipMemCreate(&h, 64 * MIB, (void *)16, 0);
    t->hipMemMap(p, 64 * MIB, 0, h, 0);
    t->hipMemMap((char *)p + 64 * MIB, 64 * MIB, 0, h, 0);
    t->hipMemRelease(h);
    printf("%zu", free_mib());
    t->hipMemUnmap(p, 64 * MIB);
    printf(" %zu", free_mib());
    t->hipMemUnmap((char *)p + 64 * MIB, 64 * MIB);
    printf(" %zu", free_mib());
    t->hipMemCreate(&h, 64 * MIB, (void *)16, 0);
    t->hipMemMap(p, 64 * MIB, 0, h, 0);
    t->hipMemUnmap(p, 64 * MIB);
    printf(" %zu", free_mib());
    t->hipMemRelease(h);
    printf(" %zu\n", free_mib());
}

/* More allocations than anybody keeps in mind; then fewer, and more again. */
static void do_crowd(void)
{
    enum { ALL = 16500, FEW = 300 };
    static void *p[ALL];
    for (size_t i = 0; i < ALL; i++)
        t->hipMalloc(&p[i], 4096);
    for (size_t i = 0; i < FEW; i++)
        t->hipFree(p[i]);
    for (size_t i = 0; i < FEW; i++)
        t->hipMalloc(&p[i], MIB / 2);
    printf("%zu", free_mib());
    for (size_t i = 0; i < ALL; i++)
        t->hipFree(p[i]);
    printf(" %zu", free_mib());
    printf(" %d", t->copy_some());
    printf(" pinned %zu\n", t->fake_pinned_for_copy());
}

/* It cannot be given back at first. */
static void do_kept(void)
{
    char *p = device(64 * MIB);
    printf("%d", t->hipFree(p));
    printf(" %zu", free_mib());
    printf(" %d", t->hipFree(p));
    printf(" %zu\n", free_mib());
}

const struct word memory_words[N_MEMORY_WORDS] = {
    { "allocate", do_allocate },
    { "figures", do_figures },
    { "moment", do_moment },
    { "at-once", do_at_once },
    { "crowd", do_crowd },
    { "in-turn", do_in_turn },
    { "cancelled-take", do_cancelled_take },
    { "allocate-more", do_allocate_more },
    { "handles", do_handles },
    { "kept", do_kept },
    { "pool", do_pool },
    { "own-pool", do_own_pool },
    { "graph-pool", do_graph_pool },
};
