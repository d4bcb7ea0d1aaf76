/* SPDX-License-Identifier: Apache-2.0
 * What the library to preload takes: a call, and a file of weights that is loaded tensor by tensor.
 *
 *     bench_preload LIBRARY TORCH FOLDER [MIB]
 *
 * The HIP is that of tests/preload, so a call itself is next to nothing, and pinning takes as long as it is told to:
 * 5 us a page for the second loads.  bench/preload_torch.py does the same with PyTorch and a GPU.  Prints CSV. */
#include "bench.h"
#include "torch.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TENSOR = 32 << 20, CALLS = 5000, ROUNDS = 60 };

static const char *switches_now;
static int stream; /* of device 0 */
static const struct torch *torch;

static void say(const char *what, double value, const char *unit)
{
    char cell[64];
    snprintf(cell, sizeof(cell), "%s", switches_now);
    for (char *at = cell; (at = strchr(at, ','));)
        *at = '+';
    printf("%s,%s,%s,%s,%.4g,%s\n", bench_machine(), bench_commit(), what, cell, value, unit);
}

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* --- a call --------------------------------------------------------------------------------------------------------- */

static void launch(void *p)
{
    static const struct fake_kernel k = { "_ZN2at6native13reduce_kernelILi512EEEvT_", 0, 0 };
    const struct size3 one = { 1, 1, 1 };
    (void)p;
    torch->hipLaunchKernel(&k, one, one, NULL, 0, NULL);
}

static void wait_for(void *p)
{
    (void)p;
    torch->hipStreamSynchronize(&stream);
}

static void copy(void *p)
{
    torch->hipMemcpyWithStream(p, (char *)p + 4096, 4096, D2D, &stream);
}

static void ask(void *p)
{
    size_t free_bytes, total;
    (void)p;
    torch->hipMemGetInfo(&free_bytes, &total);
}

/* Something was given back, so what is known of the host is not of this moment. */
static void ask_anew(void *p)
{
    torch->hipFree(NULL);
    ask(p);
}

static void measure_call(const char *name, void (*call)(void *), void *p, long n)
{
    double best = 1e9;
    for (int k = 0; k < ROUNDS; k++) {
        double begin = bench_now();
        for (long i = 0; i < n; i++)
            call(p);
        double ns = (bench_now() - begin) * 1e9 / (double)n;
        best = ns < best ? ns : best;
    }
    say(name, best, "ns");
}

/* --- a call after other work ---------------------------------------------------------------------------------------- */

#ifdef __x86_64__
enum { PAGE = 4096, LINE = 64, DATA_PAGES = 4096, CODE_PAGES = 1024, COLD_CALLS = 4000 };

/* What a program does between two calls: more data, code and pages than the caches next to the CPU hold. */
struct work {
    char *data, *code;
};

static struct work new_work(void)
{
    const int private = MAP_PRIVATE | MAP_ANONYMOUS;
    struct work w = { mmap(NULL, (size_t)DATA_PAGES * PAGE, PROT_READ | PROT_WRITE, private, -1, 0),
                      mmap(NULL, (size_t)CODE_PAGES * PAGE, PROT_READ | PROT_WRITE, private, -1, 0) };
    if (w.data == MAP_FAILED || w.code == MAP_FAILED)
        die("no memory");
    madvise(w.data, (size_t)DATA_PAGES * PAGE, MADV_NOHUGEPAGE); /* every page takes its place in the TLB */
    madvise(w.code, (size_t)CODE_PAGES * PAGE, MADV_NOHUGEPAGE);
    memset(w.code, 0xc3, (size_t)CODE_PAGES * PAGE); /* nothing but returns */
    if (mprotect(w.code, (size_t)CODE_PAGES * PAGE, PROT_READ | PROT_EXEC))
        die("no memory for code");
    return w;
}

static void do_work(const struct work *w)
{
    for (size_t i = 0; i < DATA_PAGES; i++)
        for (size_t k = 0; k < 8; k++)
            w->data[i * PAGE + (i + k * 8) * LINE % PAGE]++;
    for (size_t i = 0; i < CODE_PAGES; i++)
        ((void (*)(void))(uintptr_t)(w->code + i * PAGE + i * LINE % PAGE))();
}

/* The clock of the library would be in the cache if it was read here. */
static uint64_t ticks(void)
{
    __builtin_ia32_lfence();
    uint64_t t = __builtin_ia32_rdtsc();
    __builtin_ia32_lfence();
    return t;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median_ticks(const struct work *w, void (*call)(void *))
{
    static uint64_t took[COLD_CALLS];
    for (size_t i = 0; i < COLD_CALLS; i++) {
        do_work(w);
        uint64_t begin = ticks();
        call(NULL);
        took[i] = ticks() - begin;
    }
    qsort(took, COLD_CALLS, sizeof(took[0]), by_size);
    return (double)took[COLD_CALLS / 2];
}

static void nothing(void *p)
{
    (void)p;
}

static void measure_cold(void)
{
    struct work w = new_work();
    double begin_s = bench_now();
    uint64_t begin = ticks();
    double bare = median_ticks(&w, nothing), took = median_ticks(&w, launch);
    double ns_per_tick = (bench_now() - begin_s) * 1e9 / (double)(ticks() - begin);
    say("launch after other work", (took - bare) * ns_per_tick, "ns");
}
#else
static void measure_cold(void)
{
    /* the clock is x86's */
}
#endif

/* --- a file --------------------------------------------------------------------------------------------------------- */

static void measure_load(const char *name, const char *path, int protection, void *device)
{
    int fd = open(path, O_RDONLY);
    size_t n = (size_t)lseek(fd, 0, SEEK_END);
    char *file = mmap(NULL, n, protection, MAP_PRIVATE, fd, 0);
    if (fd < 0 || file == MAP_FAILED)
        die(path);
    double begin = bench_now();
    for (size_t at = 0; at < n; at += TENSOR)
        if (torch->hipMemcpyWithStream(device, file + at, TENSOR, H2D, &stream))
            die("a copy failed");
    say(name, (double)n / (1 << 30) / (bench_now() - begin), "GiB/s");
    munmap(file, n);
    close(fd);
}

static int inside(const char *path, const char *weights, const char *what)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *device = NULL;
    torch = library ? dlsym(library, "torch") : NULL;
    if (!torch || torch->hipMalloc(&device, TENSOR))
        die(path);
    if (!strcmp(what, "cold")) {
        measure_cold();
        return 0;
    }
    if (!strcmp(what, "calls")) {
        measure_call("launch", launch, NULL, CALLS);
        measure_call("synchronize", wait_for, NULL, CALLS);
        measure_call("copy of 4 KiB", copy, device, CALLS);
        measure_call("memory asked for", ask, NULL, CALLS / 50);
        measure_call("memory asked for after a free", ask_anew, NULL, CALLS / 50);
        return 0;
    }
    char name[64];
    snprintf(name, sizeof(name), "load read-only%s", what);
    measure_load(name, weights, PROT_READ, device);
    snprintf(name, sizeof(name), "load writable%s", what);
    measure_load(name, weights, PROT_READ | PROT_WRITE, device);
    return 0;
}

/* --- processes with and without -------------------------------------------------------------------------------------- */

static void start(char **argv, const char *weights, const char *switches, const char *what, const char *fake)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("FAKE_HIP", fake, 1);
        if (strcmp(switches, "without")) {
            setenv("LD_PRELOAD", argv[1], 1);
            setenv("CAIRN_PRELOAD", switches, 1);
            setenv("CAIRN_PRELOAD_FILE", "/dev/shm/cairn-bench", 1);
            setenv("CAIRN_PRELOAD_BUDGET", "8589934592", 1);
        }
        execl("/proc/self/exe", argv[0], "--inside", argv[2], weights, switches, what, NULL);
        _exit(126);
    }
    int status;
    char file[64];
    waitpid(pid, &status, 0);
    snprintf(file, sizeof(file), "/dev/shm/cairn-bench.%d", (int)pid);
    unlink(file);
    if (status)
        die("a process failed");
}

static void write_weights(const char *path, size_t mib)
{
    char *bytes = malloc(1 << 20);
    FILE *f = fopen(path, "wb");
    if (!f)
        die(path);
    for (size_t i = 0; i < 1 << 20; i++)
        bytes[i] = (char)(i * 2654435761U >> 13);
    for (size_t i = 0; i < mib; i++)
        if (fwrite(bytes, 1 << 20, 1, f) != 1)
            die(path);
    if (fclose(f))
        die(path);
    free(bytes);
}

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[1], "--inside")) {
        switches_now = argv[4];
        return inside(argv[2], argv[3], argv[5]);
    }
    if (argc < 4)
        die("bench_preload LIBRARY TORCH FOLDER [MIB]");
    static const char *const sets[] = { "without", "record", "record,stage,retry,memory,guard" };
    static const char *const loads[] = { "without", "record,stage" };
    char weights[512];
    snprintf(weights, sizeof(weights), "%s/bench-weights", argv[3]);
    argv[1] = realpath(argv[1], NULL);
    write_weights(weights, argc > 4 ? (size_t)atol(argv[4]) / 32 * 32 : 2048);
    puts("machine,commit,case,switches,value,unit");
    for (size_t i = 0; i < 3; i++)
        start(argv, weights, sets[i], "calls", "");
    for (size_t i = 0; i < 3; i++)
        start(argv, weights, sets[i], "cold", "");
    for (size_t i = 0; i < 2; i++)
        start(argv, weights, loads[i], "", "");
    for (size_t i = 0; i < 2; i++)
        start(argv, weights, loads[i], " slow pinning", "slow=5");
    unlink(weights);
    return 0;
}
