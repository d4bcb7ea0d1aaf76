/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 4096 }; /* a power of two, well above RECORD_KERNELS */

static struct record *mapped; /* state.record, which a child of fork does not have */
static struct record_counts nowhere;
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t
    slots[SLOTS]; /* a function and its kernel's number, in one word: read without a lock */
enum { NUMBER_BITS = 16, FORGOTTEN = 1 }; /* no function is at 0 */
static unsigned n_slots;                  /* not empty */
static unsigned last_kernel;              /* its number */
static uint32_t hashes[RECORD_KERNELS];   /* of the names */

/* A signal's handler may have forked: there is none in the child, until it starts anew. */
static uint64_t now(void)
{
    struct timespec t;
    if (state.unit == RECORD_TICKS)
        return record_ticks();
    real_clock_fn *clock = state.clock;
    (clock ? clock : clock_gettime)(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* They are the same on all CPUs, and go on while these sleep, where the kernel itself counts in them. */
static enum record_clock best_clock(const char *clocksource)
{
    char name[4] = "";
    int fd = open(clocksource, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof(name));
    if (fd >= 0)
        close(fd);
    return n == sizeof(name) && !strncmp(name, "tsc\n", sizeof(name)) ? RECORD_TICKS : RECORD_NS;
}

/* Beyond its limit a process gets a signal, not an error. */
static bool may_be_so_long(size_t n)
{
    struct rlimit limit;
    return !getrlimit(RLIMIT_FSIZE, &limit) && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= n);
}

/* The program may have taken another's place by exec: the process is the same, and the file is its own. */
static int make_file(const char *path)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    int fd = open(path, flags, 0600);
    return fd < 0 && errno == EEXIST && !unlink(path) ? open(path, flags, 0600) : fd;
}

/* On a tmpfs of an older kernel a signal ends it half done, and a profiler's come so often that no second try
 * would be better. */
static int take_blocks(int fd)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    int failed = posix_fallocate(fd, 0, sizeof(struct record));
    sigprocmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* With all its blocks allocated: a write into a mapping on a full disk would kill the process. */
static struct record *map_file(const char *path)
{
    int fd = may_be_so_long(sizeof(struct record)) ? make_file(path) : -1;
    if (fd < 0)
        return NULL;
    void *p = MAP_FAILED;
    if (!take_blocks(fd))
        p = mmap(NULL, sizeof(struct record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p != MAP_FAILED)
        return p;
    unlink(path);
    return NULL;
}

static void keep_environment(char *to, size_t size)
{
    static const char *const names[] = { RECORD_WATCHED };
    size_t at = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        size_t n = strlen(names[i]) + (value ? 1 + strlen(value) : 0);
        if (n + 2 > size - at) /* the last byte stays 0 */
            continue;
        snprintf(to + at, size - at, "%s%s%s", names[i], value ? "=" : "", value ? value : "");
        at += n + 1;
    }
}

void recorder_open(const struct told *t)
{
    char path[sizeof(t->file) + 16];
    snprintf(path, sizeof(path), "%s.%d", t->file, (int)getpid());
    struct record *r = t->file[0] ? map_file(path) : NULL;
    if (!r)
        return;
    r->version = RECORD_VERSION;
    r->pid = (uint32_t)getpid();
    r->switches = t->switches;
    r->runtime = t->runtime;
    last_kernel = 0;
    for (size_t i = 0; i < N_CALLS; i++)
        snprintf(r->function[i], sizeof(r->function[i]), "%s", call_names[i]);
    snprintf(r->library, sizeof(r->library), "%s", real_library());
    keep_environment(r->env, sizeof(r->env));
    r->clock = state.unit = best_clock(t->clocksource);
    memcpy(r->magic, RECORD_MAGIC, sizeof(r->magic));
    mapped = r;
    state.clock = real_clock();
    atomic_store_explicit(&state.record, r, memory_order_release);
}
_Static_assert((int)N_CALLS <= (int)RECORD_FUNCTIONS, "the file has a slot for every function");

static void forget_slots(void)
{
    for (size_t i = 0; i < SLOTS; i++)
        atomic_store_explicit(&slots[i], 0, memory_order_relaxed);
    n_slots = 0;
}

void recorder_forget_kernels(void)
{
    pthread_mutex_lock(&naming);
    forget_slots();
    pthread_mutex_unlock(&naming);
}

void recorder_forget(void)
{
    if (mapped)
        munmap(mapped, sizeof(*mapped));
    mapped = NULL;
    naming = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    recorder_forget_kernels();
}

struct record_counts *recorder_counts(void)
{
    struct record *r = atomic_load_explicit(&state.record, memory_order_acquire);
    return r ? &r->counts : &nowhere;
}

HOT struct seen recorder_begin(enum call c, uint64_t size, unsigned detail)
{
    struct record *r = atomic_load_explicit(&state.record, memory_order_acquire);
    if (!r)
        return (struct seen){ 0 };
    if (state_thread.process != state.process) {
        state_thread.thread = (uint32_t)syscall(SYS_gettid);
        state_thread.process = state.process;
    }
    uint64_t nth = atomic_fetch_add_explicit(&state.n_calls, 1, memory_order_relaxed) + 1;
    struct record_call *e = &r->call[nth % RECORD_CALLS];
    atomic_store_explicit(&e->nth, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    e->start = now();
    e->took = 0;
    e->size = size;
    e->code = 0;
    e->thread = state_thread.thread;
    e->function = (uint16_t)c;
    e->kernel = (uint16_t)detail;
    atomic_store_explicit(&e->returned, 0, memory_order_relaxed);
    atomic_store_explicit(&e->nth, nth, memory_order_release);
    return (struct seen){ e, nth };
}

/* Unless so many calls came meanwhile that the place has another. */
HOT void recorder_end(struct seen s, int code)
{
    if (!s.call || atomic_load_explicit(&s.call->nth, memory_order_relaxed) != s.nth)
        return;
    s.call->took = now() - s.call->start;
    s.call->code = code;
    atomic_store_explicit(&s.call->returned, 1, memory_order_release);
}

/* A concurrent lookup of one of its functions finds the old number, which then has no name. */
static void forget_number(uint16_t number)
{
    for (size_t i = 0; i < SLOTS; i++)
        if ((uint16_t)slots[i] == number)
            atomic_store_explicit(&slots[i], FORGOTTEN, memory_order_relaxed);
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 2166136261U;
    for (size_t i = 0; name[i] && i < sizeof(((struct record_kernel *)0)->name) - 1; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619U;
    return hash;
}

/* A module that was loaded again has the same kernels at other places. */
static unsigned find_kernel(const struct record *r, const char *name, uint32_t hash)
{
    for (size_t i = 0; i < RECORD_KERNELS; i++)
        if (hashes[i] == hash && r->kernel[i].number &&
            !strncmp(r->kernel[i].name, name, sizeof(r->kernel[i].name) - 1))
            return r->kernel[i].number;
    return 0;
}

static unsigned add_kernel(const char *name)
{
    struct record *r = atomic_load_explicit(&state.record, memory_order_acquire);
    uint32_t hash = name ? hash_of(name) : 0;
    unsigned known = r && name ? find_kernel(r, name, hash) : 0;
    if (!r || !name || known)
        return known;
    last_kernel = last_kernel == UINT16_MAX ? 1 : last_kernel + 1;
    struct record_kernel *k = &r->kernel[last_kernel % RECORD_KERNELS];
    if (k->number)
        forget_number((uint16_t)k->number);
    atomic_store_explicit(&k->number, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    snprintf(k->name, sizeof(k->name), "%s", name);
    hashes[last_kernel % RECORD_KERNELS] = hash;
    atomic_store_explicit(&k->number, last_kernel, memory_order_release);
    return last_kernel;
}

/* One that is missing, or was removed meanwhile, is looked up again with the lock. */
static bool look(uint64_t function, size_t *at, unsigned *kernel)
{
    size_t i = (function >> 4) * 0x9e3779b97f4a7c15U >> 52;
    for (;; i = (i + 1) % SLOTS) {
        uint64_t word = atomic_load_explicit(&slots[i], memory_order_acquire);
        bool is_it = word >> NUMBER_BITS == function;
        *at = i;
        *kernel = is_it ? word & ((1U << NUMBER_BITS) - 1) : 0;
        if (is_it || !word)
            return is_it;
    }
}

static unsigned remember(uint64_t function, const char *name)
{
    unsigned kernel = add_kernel(name), other;
    size_t at;
    if (n_slots >= SLOTS / 2)
        forget_slots();
    look(function, &at, &other);
    n_slots++;
    atomic_store_explicit(&slots[at], function << NUMBER_BITS | kernel, memory_order_release);
    return kernel;
}

static COLD unsigned name_kernel(const void *f, const char *(*name)(const void *))
{
    uint64_t function = (uintptr_t)f;
    size_t at;
    unsigned kernel;
    state_own(true);
    pthread_mutex_lock(&naming);
    if (!look(function, &at, &kernel))
        kernel = remember(function, name(f));
    pthread_mutex_unlock(&naming);
    state_own(false);
    return kernel;
}

HOT unsigned recorder_kernel(const void *f, const char *(*name)(const void *))
{
    uint64_t function = (uintptr_t)f;
    size_t at;
    unsigned kernel = 0;
    if (!f || function >> (64 - NUMBER_BITS) || !atomic_load_explicit(&state.record, memory_order_relaxed) ||
        look(function, &at, &kernel))
        return kernel;
    return name_kernel(f, name);
}
_Static_assert((1 << NUMBER_BITS) - (int)RECORD_KERNELS > (int)RECORD_CALLS,
               "an index is not reused while a call holds it");
