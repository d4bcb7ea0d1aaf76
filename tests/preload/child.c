/* SPDX-License-Identifier: Apache-2.0
 * The trainer of tests/preload/test_preload.c: opens what stands for PyTorch as Python would, does what the word in its
 * first argument says, and prints what came of it. */
#include "torch.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, BIG = 9 * MIB + 12345 };

static const struct torch *t;
static int stream_a, stream_b;
static char **arguments;
extern char **environ;

static void open_torch(const char *path)
{
    void *torch = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    t = torch ? dlsym(torch, "torch") : NULL;
    if (!t) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
}

static char *device(size_t n)
{
    void *p = NULL;
    if (t->hipMalloc(&p, n))
        printf("no device memory\n");
    return p;
}

static char *filled(char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)((i * 2654435761U + seed) >> 11);
    return p;
}

/* A file of such bytes, mapped. */
static char *mapped(size_t n, int protection, unsigned seed)
{
    char *bytes = filled(malloc(n), n, seed);
    int fd = memfd_create("weights", MFD_CLOEXEC);
    if (write(fd, bytes, n) != (ssize_t)n)
        exit(3);
    free(bytes);
    return mmap(NULL, n, protection, protection & PROT_WRITE ? MAP_PRIVATE : MAP_SHARED, fd, 0);
}

/* Through pinned memory, so that only the copies under test pin. */
static int arrived(const char *on_device, size_t n, unsigned seed)
{
    void *back = NULL;
    char *wanted = filled(malloc(n), n, seed);
    if (t->hipHostMalloc(&back, n, 0))
        back = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int code = t->hipMemcpy(back, on_device, n, D2H);
    int same = !code && !memcmp(back, wanted, n);
    free(wanted);
    t->hipHostFree(back);
    return same;
}

/* --- what it does --- */

static void do_calls(void)
{
    const struct fake_kernel good = { "_ZN2at6native4gemmIfEEvPT_", 0, 0 },
                             bad = { "attention_backward", 719, 0 };
    const struct size3 grid = { 3, 2, 1 }, block = { 64, 1, 1 };
    char *p = device(5000), text[5000] = "";
    printf("copy %d\n", t->hipMemcpyWithStream(p, text, sizeof(text), H2D, &stream_a));
    printf("launch %d\n", t->hipLaunchKernel(&good, grid, block, NULL, 0, NULL));
    printf("launch %d\n", t->hipLaunchKernel(&bad, grid, block, NULL, 0, NULL));
    printf("launch %d\n", t->hipLaunchKernel(&good, grid, block, NULL, 0, NULL));
    printf("free %d\n", t->hipFree(p));
}

/* Another program in the same process. */
static void do_exec(void)
{
    char word[] = "calls";
    char *const argv[] = { arguments[0], word, arguments[2], NULL };
    device(5000);
    execv(arguments[0], argv);
}

static void report(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    printf("status %d\n", status);
}

/* Programs that are started in other ways than by fork, the last with nothing in its environment. */
static void do_spawn(void)
{
    char word[] = "calls";
    char *const argv[] = { arguments[0], word, arguments[2], NULL }, *nothing[] = { NULL };
    pid_t pid = -1;
    do_calls();
    fflush(stdout);
    if (!posix_spawn(&pid, arguments[0], NULL, NULL, argv, environ))
        report(pid);
    fflush(stdout);
    if (!(pid = vfork())) {
        execv(arguments[0], argv);
        _exit(126);
    }
    report(pid);
    fflush(stdout);
    if (!posix_spawn(&pid, arguments[0], NULL, NULL, argv, nothing))
        report(pid);
    do_calls();
}

/* Another library brought a runtime of its own along. */
static void do_two(void)
{
    const struct torch *first = t;
    char *other = strdup(arguments[2]);
    strcpy(strstr(other, "libtorch6.so"), "libtorch7.so");
    open_torch(other);
    for (int i = 0; i < 3; i++) {
        const struct torch *through = i == 1 ? t : first;
        printf("%d", through->copy_some());
        printf(" pinned %zu\n", through->fake_pinned_for_copy());
    }
}

/* The first one is there for all. */
static void do_two_shared(void)
{
    if (dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD))
        do_two();
}

static void do_cleared(void)
{
    clearenv();
    do_calls();
}

/* Where neither the file's folder nor /proc is. */
static void do_chroot(void)
{
    size_t free_bytes, total;
    if (chroot("/usr") || chdir("/")) {
        printf("no chroot\n");
        return;
    }
    do_calls();
    printf("asked %d\n", t->hipMemGetInfo(&free_bytes, &total));
}

static void *ask_cancelled(void *context)
{
    size_t free_bytes, total;
    pthread_cancel(pthread_self());
    t->hipMemGetInfo(&free_bytes, &total);
    return context;
}

/* A thread that ends at its first chance must not take a lock along. */
static void do_cancel(void)
{
    size_t free_bytes, total;
    pthread_t thread;
    alarm(10);
    pthread_create(&thread, NULL, ask_cancelled, NULL);
    pthread_join(thread, NULL);
    printf("asked %d\n", t->hipMemGetInfo(&free_bytes, &total));
}

/* In a child, since device memory is a file here too. */
static void do_limited(void)
{
    const struct rlimit small = { 4096, 4096 };
    int status = 0;
    device(5000);
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_FSIZE, &small);
        void *p = NULL;
        _exit(t->hipMalloc(&p, 5000));
    }
    waitpid(pid, &status, 0);
    printf("status %d\n", status);
}

/* The same kernel at two places. */
static void do_twice(void)
{
    const struct fake_kernel a = { "gemm", 0, 0 }, b = a;
    const struct size3 one = { 1, 1, 1 };
    t->hipLaunchKernel(&a, one, one, NULL, 0, NULL);
    t->hipLaunchKernel(&b, one, one, NULL, 0, NULL);
}

static void do_hang(void)
{
    const struct fake_kernel stuck = { "never_ends", 0, 1 };
    const struct size3 one = { 1, 1, 1 };
    printf("begun\n");
    fflush(stdout);
    t->hipLaunchKernel(&stuck, one, one, NULL, 0, NULL);
}

/* A model of three tensors, each mapped in another way. */
static void do_load(void)
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

static void *wait_for_ever(void *context)
{
    char *d = device(MIB);
    t->hipMemcpyAsync(d, mapped(MIB, PROT_READ, 1), MIB, H2D, &stream_b);
    return context;
}

/* One thread waits for a stream that never comes to rest, another one copies. */
static void do_stuck(void)
{
    pthread_t thread;
    char *d = device(MIB);
    t->fake_break_stream(&stream_b, 0);
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    usleep(100000);
    alarm(10);
    printf("%d", t->hipMemcpyAsync(d, mapped(MIB, PROT_READ, 2), MIB, H2D, &stream_a));
    printf(" %d\n", arrived(d, MIB, 2));
}

/* A kernel has failed, and the wait says so. */
static void do_failed_stream(void)
{
    char *d = device(MIB);
    t->fake_break_stream(&stream_b, 719);
    printf("%d", t->hipMemcpyAsync(d, mapped(MIB, PROT_READ, 2), MIB, H2D, &stream_b));
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
    printf(" %d", t->hipMemcpyAsync(d, source, BIG, H2D, &stream_b));
    printf(" pinned %zu", t->fake_pinned_for_copy());
    printf(" %d", t->hipStreamEndCapture(&stream_b, &graph));
    printf(" %d", t->hipStreamBeginCaptureToGraph(&stream_a, NULL, NULL, NULL, 0, 0));
    printf(" %d", t->hipStreamEndCapture(&stream_b, &graph));
    printf(" %d", t->hipMemcpyAsync(d, source, BIG, H2D, &stream_b));
    printf(" pinned %zu", t->fake_pinned_for_copy());
    printf(" %d\n", t->hipStreamEndCapture(&stream_a, &graph));
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

static size_t free_mib(void)
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
    printf("%d", free_mib() < 1024);
    for (size_t i = 0; i < ALL; i++)
        t->hipFree(p[i]);
    printf(" %zu\n", free_mib());
}

static void do_fork(void)
{
    do_load();
    fflush(stdout);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        char *d = device(BIG), *source = filled(malloc(BIG), BIG, 8);
        printf("child %d", t->hipMemcpy(d, source, BIG, H2D));
        printf(" %d\n", arrived(d, BIG, 8));
        fflush(stdout);
        _exit(7);
    }
    waitpid(child, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
    do_load();
}

static void *copy_often(void *context)
{
    unsigned seed = (unsigned)(size_t)context;
    size_t n = 300000;
    char *d = device(n), *source = malloc(n);
    size_t good = 0;
    for (unsigned i = 0; i < 50; i++) {
        int code =
            t->hipMemcpyWithStream(d, filled(source, n, seed + i), n, H2D, i % 2 ? &stream_a : &stream_b);
        good += !code && arrived(d, n, seed + i);
    }
    return (void *)good;
}

static void do_threads(void)
{
    pthread_t threads[8];
    size_t good = 0;
    for (size_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, copy_often, (void *)(i * 1000));
    for (size_t i = 0; i < 8; i++) {
        void *result;
        pthread_join(threads[i], &result);
        good += (size_t)result;
    }
    printf("%zu\n", good);
}

static void *copy_for_ever(void *context)
{
    static char source[100000];
    char *d = device(sizeof(source));
    for (;;)
        t->hipMemcpy(d, source, sizeof(source), H2D);
    return context;
}

/* The program ends while its threads are at it. */
static void do_exit(void)
{
    pthread_t thread;
    for (size_t i = 0; i < 4; i++)
        pthread_create(&thread, NULL, copy_for_ever, NULL);
    usleep(30000);
    printf("bye\n");
    exit(9);
}

/* Others are in the middle of everything when it forks. */
static void do_fork_busy(void)
{
    pthread_t thread;
    for (size_t i = 0; i < 4; i++)
        pthread_create(&thread, NULL, copy_for_ever, NULL);
    int status = 0;
    for (size_t i = 0; i < 30 && !status; i++) {
        usleep(1000);
        pid_t child = fork();
        if (child == 0) {
            static char source[100000];
            alarm(5);
            _exit(t->hipMemcpy(device(sizeof(source)), source, sizeof(source), H2D));
        }
        waitpid(child, &status, 0);
    }
    printf("status %d\n", status);
    fflush(stdout);
    _exit(0);
}

static void do_many(void)
{
    static struct fake_kernel kernels[3000];
    static char names[3000][400];
    const struct size3 one = { 1, 1, 1 };
    for (size_t round = 0; round < 2; round++)
        for (size_t i = 0; i < 3000; i++) {
            snprintf(names[i], sizeof(names[i]), "kernel_%zu_%0*d", i, (int)(i % 380), 0);
            kernels[i].name = names[i];
            t->hipLaunchKernel(&kernels[i], one, one, NULL, 0, NULL);
        }
    printf("done\n");
}

static const struct {
    const char *name;
    void (*run)(void);
} words[] = {
    { "calls", do_calls },
    { "hang", do_hang },
    { "load", do_load },
    { "order", do_order },
    { "bad", do_bad },
    { "capture", do_capture },
    { "allocate", do_allocate },
    { "figures", do_figures },
    { "fork", do_fork },
    { "threads", do_threads },
    { "exit", do_exit },
    { "many", do_many },
    { "fork-busy", do_fork_busy },
    { "neighbour", do_neighbour },
    { "stuck", do_stuck },
    { "failed-stream", do_failed_stream },
    { "reset", do_reset },
    { "map", do_map },
    { "odd-capture", do_odd_capture },
    { "exec", do_exec },
    { "limited", do_limited },
    { "twice", do_twice },
    { "spawn", do_spawn },
    { "two", do_two },
    { "two-shared", do_two_shared },
    { "cleared", do_cleared },
    { "chroot", do_chroot },
    { "cancel", do_cancel },
    { "moment", do_moment },
    { "at-once", do_at_once },
    { "crowd", do_crowd },
};

int main(int argc, char **argv)
{
    arguments = argv;
    if (argc != 3)
        return 2;
    open_torch(argv[2]);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcmp(words[i].name, argv[1]))
            words[i].run();
    return 0;
}
