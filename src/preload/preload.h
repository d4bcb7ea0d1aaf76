/* SPDX-License-Identifier: Apache-2.0
 * The library that runs inside other processes: it wraps the functions of a GPU runtime, records calls,
 * and does more if configured (docs/preload.md).
 *
 * Nothing happens before the first call of such a function; until then, and in a process that never
 * makes one, the library is only mapped.  Its own failures never change what the caller gets: in doubt
 * it passes the call on unchanged.  It depends only on libc, and only on functions that musl has too:
 * otherwise a program that uses musl would not start.
 *
 * Any thread may call.  A child of fork starts anew. */
#ifndef CAIRN_PRELOAD_PRELOAD_H
#define CAIRN_PRELOAD_PRELOAD_H

#include "preload/record.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef PRELOAD_CUDA /* the same code before CUDA's runtime, for tests on such a machine */
#define FN(hip, cuda) cuda
#define RUNTIME_FILE "libcudart"
#define IF_HIP(...)
#define IF_CUDA(...) __VA_ARGS__
#else
#define FN(hip, cuda) hip
#define RUNTIME_FILE "libamdhip64"
#define IF_HIP(...) __VA_ARGS__
#define IF_CUDA(...)
#endif
/* What every launch runs through lies together, and what it does not lies elsewhere. */
#define HOT __attribute__((hot))
#define COLD __attribute__((noinline, cold))
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* The same values in both runtimes. */
enum { GPU_OK, GPU_INVALID_VALUE, GPU_OUT_OF_MEMORY, GPU_NOT_INITIALIZED, GPU_NOT_SUPPORTED = 801 };
enum { COPY_TO_DEVICE = 1, COPY_TO_HOST = 2, COPY_DEFAULT = 4 };

enum call {
#define OWN(hip, cuda) CALL_##hip,
#define PASS(hip, cuda, params, args, size) CALL_##hip,
#define HIP_OWN(hip) IF_HIP(CALL_##hip, )
#define HIP_PASS(hip, params, args, size) IF_HIP(CALL_##hip, )
#define CUDA_OWN(cuda) IF_CUDA(CALL_##cuda, )
#include "preload/calls.def"
#undef OWN
#undef PASS
#undef HIP_OWN
#undef HIP_PASS
#undef CUDA_OWN
    N_CALLS,
    /* Those that we only use. */
    HELP_PEEK_ERROR = N_CALLS,
    HELP_LAST_ERROR,
    HELP_IS_CAPTURING,
    HELP_EVENT_CREATE,
    HELP_EVENT_RECORD,
    HELP_EVENT_QUERY,
    HELP_CAPTURE_MODE,
    HELP_DEVICE,
    HELP_POINTER,
    HELP_VERSION,
    HELP_STUB_NAME,
    HELP_FUNCTION_NAME,
    HELP_STREAM_DEVICE,
    HELP_POOL,
    HELP_POOL_ATTRIBUTE,
    HELP_POOL_TRIM,
    N_REAL,
};
extern const char *const call_names[N_REAL];

/* --- real.c: the wrapped functions --------------------------------------------------------------------- */

/* There may be two, if libraries bundle their own. The first one called is the one that we know; calls to
 * another one are only passed on. */
struct runtime {
    bool is_first;
    void *found[N_REAL]; /* NULL: it has no such function */
    char path[256];
};
/* The one that the caller at this address would have without us; NULL: the process has none. The loader is
 * asked once a caller. */
const struct runtime *real_runtime(const void *caller);
/* Of the first, which has been called. */
void *real_get(enum call c);
const char *real_library(void);
/* The kernel's own clock_gettime; NULL: the loader does not have it. */
typedef int real_clock_fn(clockid_t, struct timespec *);
real_clock_fn *real_clock(void);

/* --- state.c: configuration of the process ------------------------------------------------------------- */

enum { MOST_BUFFERS = 16 };
struct told {
    unsigned switches;
    int runtime;
    uint64_t budget_bytes, reserve_bytes; /* 0: not configured */
    uint64_t piece_bytes, n_buffers;
    char meminfo[128], clocksource[128], file[512];
};
/* What every call looks at: a call comes after much else, and each line and page that it touches has to be
 * fetched. The kernel empties it in a child of fork. */
struct state {
    _Atomic int ready;
    uint32_t process; /* how many this is, from the first one's on through forks */
    _Atomic(struct record *) record;
    _Atomic uint64_t n_calls;
    enum record_clock unit;
    real_clock_fn *clock;
    struct told told;
} __attribute__((aligned(4096))); /* and nothing else on its page */
extern struct state state;
/* The same of a thread. */
struct state_thread {
    int own, cancels;
    int inside;               /* the runtime is in a call of this thread */
    uint32_t thread, process; /* its number, as it was in that process */
};
extern __thread struct state_thread state_thread __attribute__((tls_model("initial-exec")));

/* The first call of a process, and of a child of fork, prepares everything. */
const struct told *state_start(void);
/* NULL: leave the call alone, since we make it ourselves, or the runtime does inside of another one. */
static inline const struct told *state_enter(void)
{
    if (state_thread.own || state_thread.inside)
        return NULL;
    return atomic_load_explicit(&state.ready, memory_order_acquire) ? &state.told : state_start();
}
/* The number at the beginning of a text, after spaces. */
uint64_t state_number(const char *text);
/* Calls that this thread makes meanwhile are our own, and it is not cancelled: it may hold a lock. */
void state_own(bool on);
/* Held briefly, without calls to other code: in a child of fork no thread may be left to release it. */
void state_lock(void);
void state_unlock(void);

/* --- recorder.c ---------------------------------------------------------------------------------------- */

void recorder_open(const struct told *t);
void recorder_forget(void); /* in a child of fork: the file is its parent's */
struct seen {
    struct record_call *call;
    uint64_t nth;
};
/* detail: a launch's kernel, a copy's kind, or that an allocation is refused. */
struct seen recorder_begin(enum call c, uint64_t size, unsigned detail);
void recorder_end(struct seen s, int code);
/* An index for the kernel of a function, 0 if its name is unknown. */
unsigned recorder_kernel(const void *function, const char *(*name)(const void *));
/* A module is gone, and another kernel may get the place of one of its own. */
void recorder_forget_kernels(void);
/* Where to count; somewhere, when nothing is recorded. */
struct record_counts *recorder_counts(void);

/* --- ranges.c: memory that the runtime knows, as far as it went through us ----------------------------- */

enum range_kind {
    RANGE_PINNED,
    RANGE_DEVICE,
    RANGE_HANDLE, /* memory of the device without an address: p is a handle */
    RANGE_MAPPED, /* addresses that alias such memory; several in a row are one place */
};
void ranges_add(enum range_kind k, const void *p, size_t n);
/* Before it is freed; and when that has returned. What could not be freed stays as before. */
struct range_gone {
    enum range_kind kind;
    size_t n; /* 0: it was not known */
};
struct range_gone ranges_remove(enum range_kind k, const void *p);
void ranges_freed(const void *p, struct range_gone gone, bool failed);
/* Not pinned, as far as known; false if the table is incomplete. */
bool ranges_is_pageable(const void *p, size_t n);
/* Of the device, as far as went through us: wholly inside one allocation, clear of all, or neither. */
enum place { PLACE_DEVICE, PLACE_CLEAR, PLACE_ACROSS };
enum place ranges_place(const void *p, size_t n);
/* The memory of a handle, at these addresses. */
void ranges_map(const void *p, size_t n, const void *handle);
void ranges_unmap(const void *p, size_t n);
void ranges_release(const void *handle);
/* Incomplete: there was no space for some. */
uint64_t ranges_device_bytes(bool *is_whole);
void ranges_reset(void);  /* the device takes all back */
void ranges_forget(void); /* in a child of fork */

/* --- memory.c ------------------------------------------------------------------------------------------ */

/* Would an allocation of this size starve the host? If not, the caller reports when it has returned. If only
 * pending allocations of other threads make it so, wait for them, 3 s at most. */
bool memory_refuses(const struct told *t, size_t n);
void memory_returned(size_t n);
/* Where an allocation in the order of a stream comes from. */
struct memory_pool {
    bool is_one;
    void *stream, *pool; /* NULL: the one of the stream's device */
    uint64_t held;       /* by the pool, when it was to lend; 0: it was not */
};
/* So much is in the pool and not used, or nothing is taken yet, since it is only noted for a graph. */
bool memory_pool_lends(struct memory_pool *p, size_t n);
/* The allocation has returned. If no piece of the pool was long enough it took another one of the host, which
 * gets back what the pool does not use. */
void memory_pool_settle(const struct memory_pool *p);
/* The program took memory of the device, or gave some back. */
void memory_changed(void);
/* Corrects what the runtime reported; either may be NULL. */
void memory_report(const struct told *t, size_t *free_bytes, size_t *total_bytes);
void memory_forget(void); /* in a child of fork */

/* --- copy.c -------------------------------------------------------------------------------------------- */

/* The shapes of the copying functions. */
enum copy_shape { COPY_KIND, COPY_KIND_STREAM, COPY_PLAIN, COPY_STREAM };
struct copy {
    enum copy_shape shape;
    void *real, *to;
    const void *from;
    size_t n;
    int kind;
    void *stream;
};
int copy_run(const struct copy *c, const struct told *t);
/* While a stream is captured, nothing else may happen. A capture that is not known to have begun does not
 * end. */
void copy_capture_begins(void *stream);
bool copy_capture_ends(void *stream);
void copy_reset(void);  /* the device takes all back */
void copy_forget(void); /* in a child of fork */

#endif
