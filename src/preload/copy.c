/* SPDX-License-Identifier: Apache-2.0
 * Copies to the device from memory that is not pinned.  The runtime would pin the source for the time
 * of the copy, which for a mapped file is slow, fails, or never ends; here the bytes pass through
 * buffers that are pinned for good, one of which is filled while the others are on their way.
 *
 * A call takes buffers out of the pool and has them alone, so no lock is held while it works.  As with
 * the runtime, an asynchronous copy that is short reads its source at the call and returns, and a
 * longer one waits for its stream; in older runtimes all wait. */
#include "preload/preload.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum { LEAST = 64 << 10 };                /* what is smaller the runtime stages itself */
enum { SHORT = 1 << 20 };                 /* longer ones the runtime waits for, whatever they are called */
enum { PORTABLE = 1 };                    /* pinned for every device */
enum { NO_TIMING = 2 };                   /* of an event */
enum { RELAXED = 2 };                     /* what others capture does not forbid our calls */
enum { MOST_DEVICES = 16 };               /* others are not staged for */
enum { NAPS = 5000, NAP_US = 50 };        /* waits that could be for ever end within a second or so */
enum { TYPED = FN(60000000, 0) };         /* before this version memory that is pinned has the type 0 */
enum { READS_AT_ONCE = FN(60400000, 0) }; /* before this one short copies wait as well */
enum { MOST_SKIPPED = 1024 };             /* calls that do without before pinned memory is asked for again */

struct buffer {
    char *bytes;
    void *copied;               /* an event: it is free when that has passed; NULL: it is free */
    void *events[MOST_DEVICES]; /* made when needed */
};

/* All of it is under the lock, which no thread holds while it calls the runtime. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct buffer buffers[MOST_BUFFERS]; /* that no call has */
    size_t n, n_all;                     /* with those that calls have */
    unsigned age;                        /* buffers from before a reset are not taken back */
    unsigned refused, skip;
} pool;
static pthread_mutex_t capture_lock = PTHREAD_MUTEX_INITIALIZER;
static void *captured[64]; /* streams */
static _Atomic size_t n_captured;

typedef int copy_kind_fn(void *, const void *, size_t, int);
typedef int copy_kind_stream_fn(void *, const void *, size_t, int, void *);
typedef int copy_plain_fn(void *, const void *, size_t);
typedef int copy_stream_fn(void *, const void *, size_t, void *);
typedef int stream_fn(void *);

static void forget_buffers(void)
{
    pool.n = pool.n_all = 0;
    pool.refused = pool.skip = 0;
    pool.age++;
}

void copy_forget(void)
{
    lock = capture_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    forget_buffers();
    n_captured = 0;
}

void copy_reset(void)
{
    pthread_mutex_lock(&lock);
    forget_buffers();
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&capture_lock);
    n_captured = 0;
    pthread_mutex_unlock(&capture_lock);
}

/* If the table is full, the runtime itself is asked. */
void copy_capture_begins(void *stream)
{
    pthread_mutex_lock(&capture_lock);
    if (n_captured < sizeof(captured) / sizeof(captured[0]))
        captured[n_captured++] = stream;
    pthread_mutex_unlock(&capture_lock);
}

bool copy_capture_ends(void *stream)
{
    pthread_mutex_lock(&capture_lock);
    size_t i = n_captured;
    while (i > 0 && captured[i - 1] != stream)
        i--;
    if (i > 0)
        captured[i - 1] = captured[--n_captured];
    pthread_mutex_unlock(&capture_lock);
    return i > 0;
}

static int copy_piece(const struct copy *c, size_t at, size_t n)
{
    char *to = (char *)c->to + at;
    const char *from = (const char *)c->from + at;
    switch (c->shape) {
    case COPY_KIND:
        return ((copy_kind_fn *)c->real)(to, from, n, c->kind);
    case COPY_KIND_STREAM:
        return ((copy_kind_stream_fn *)c->real)(to, from, n, c->kind, c->stream);
    case COPY_PLAIN:
        return ((copy_plain_fn *)c->real)(to, from, n);
    case COPY_STREAM:
        break;
    }
    return ((copy_stream_fn *)c->real)(to, from, n, c->stream);
}

/* --- what must not be seen of our own calls ------------------------------------------------------------ */

/* A runtime remembers the last error until somebody asks for it. One of the program's own could not be put
 * back. */
static int last_error(enum call which)
{
    int (*ask)(void) = (int (*)(void))real_get(which);
    return ask ? ask() : GPU_OK;
}

/* While another thread captures a stream, most calls are forbidden to all that do not say this. The mode
 * before; -1: it was not changed, and need not be put back. */
static int set_capture_mode(int mode)
{
    int (*exchange)(int *) = (int (*)(int *))real_get(HELP_CAPTURE_MODE);
    return exchange && mode >= 0 && !exchange(&mode) ? mode : -1;
}

static int begin_own(void)
{
    state_own(true);
    return set_capture_mode(RELAXED);
}

static void end_own(int mode)
{
    set_capture_mode(mode);
    last_error(HELP_LAST_ERROR);
    state_own(false);
}

/* A stream that is captured takes no waiting, and while one is, no memory may be asked for. */
static bool is_captured(void *stream)
{
    int (*ask)(void *, int *) = (int (*)(void *, int *))real_get(HELP_IS_CAPTURING);
    int status = 0;
    return n_captured > 0 || (ask && (ask(stream, &status) || status));
}

/* The runtime knows memory as pinned, or as its own, whoever asked for it. */
static bool is_known(const struct told *t, const void *p)
{
    int (*ask)(void *, const void *) = (int (*)(void *, const void *))real_get(HELP_POINTER);
    int about[64] = { 0 }; /* first the type; larger than any version needs */
    if (!ask)
        return true;
    return !ask(about, p) && (about[0] || t->runtime < TYPED);
}

/* It is read at the call, so what the stream has still to do must not be able to write there. */
static bool may_stage(const struct copy *c, const struct told *t)
{
    return !is_captured(c->stream) && !is_known(t, c->from) && !is_known(t, (const char *)c->from + c->n - 1);
}

/* --- the pool ------------------------------------------------------------------------------------------ */

static bool has_passed(const struct buffer *b)
{
    stream_fn *ask = (stream_fn *)real_get(HELP_EVENT_QUERY);
    return !b->copied || (ask && !ask(b->copied));
}

/* The one that was used last, since it is in the cache, of those that are known to be free; otherwise the
 * oldest. */
static bool pick(struct buffer *b)
{
    pthread_mutex_lock(&lock);
    size_t i = pool.n, n = pool.n;
    while (i > 0 && pool.buffers[i - 1].copied)
        i--;
    i = i > 0 ? i - 1 : 0;
    if (n > 0) {
        *b = pool.buffers[i];
        memmove(&pool.buffers[i], &pool.buffers[i + 1], (n - 1 - i) * sizeof(*b));
        pool.n--;
    }
    pthread_mutex_unlock(&lock);
    return n > 0;
}

static void give_back(const struct buffer *b, unsigned age)
{
    pthread_mutex_lock(&lock);
    if (age == pool.age)
        pool.buffers[pool.n++] = *b;
    pthread_mutex_unlock(&lock);
}

static unsigned pool_age(void)
{
    pthread_mutex_lock(&lock);
    unsigned age = pool.age;
    pthread_mutex_unlock(&lock);
    return age;
}

static bool pool_has_any(void)
{
    pthread_mutex_lock(&lock);
    bool any = pool.n_all > 0;
    pthread_mutex_unlock(&lock);
    return any;
}

/* How many may be asked for. */
static size_t reserve(size_t n, unsigned age)
{
    pthread_mutex_lock(&lock);
    size_t left = age == pool.age ? MOST_BUFFERS - pool.n_all : 0;
    n = n < left ? n : left;
    if (n > 0 && pool.skip > 0) {
        pool.skip--;
        n = 0;
    }
    pool.n_all += n;
    pthread_mutex_unlock(&lock);
    return n;
}

static void note_answer(size_t n, unsigned age, bool given)
{
    pthread_mutex_lock(&lock);
    if (!given && age == pool.age)
        pool.n_all -= n;
    pool.refused = given ? 0 : pool.refused ? 2 * pool.refused : 1;
    pool.refused = pool.refused < MOST_SKIPPED ? pool.refused : MOST_SKIPPED;
    pool.skip = pool.refused;
    pthread_mutex_unlock(&lock);
}

/* Without a crash where the source is no memory of the host after all. Old kernels cannot be asked to make
 * pages present; there, and for odd mappings, the kernel copies. */
static bool read_source(char *to, const char *from, size_t n)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)from & ~(page - 1);
    if (!madvise((void *)begin, (uintptr_t)from + n - begin, MADV_POPULATE_READ)) {
        memcpy(to, from, n);
        return true;
    }
    if (errno != EINVAL)
        return false;
    const struct iovec into = { to, n }, out_of = { (void *)(uintptr_t)from, n };
    return process_vm_readv(getpid(), &into, 1, &out_of, 1, 0) == (ssize_t)n;
}

/* --- the way through the buffers ----------------------------------------------------------------------- */

struct way {
    const struct copy *copy;
    const struct told *told;
    bool waits; /* the call returns when all has arrived */
    int device;
    unsigned age;
    size_t n;
    struct buffer buffers[MOST_BUFFERS];
};

static void take_free(struct way *w, size_t wanted)
{
    for (size_t tries = MOST_BUFFERS; w->n < wanted && tries > 0 && pick(&w->buffers[w->n]); tries--) {
        struct buffer *b = &w->buffers[w->n];
        if (has_passed(b)) {
            b->copied = NULL;
            w->n++;
        } else {
            give_back(b, w->age);
        }
    }
}

static void take_new(struct way *w, size_t wanted)
{
    int (*get)(void **, size_t, unsigned) = (int (*)(void **, size_t, unsigned))real_get(CALL_hipHostMalloc);
    void *p = NULL;
    size_t n = reserve(wanted, w->age), size = w->told->piece_bytes;
    if (!n)
        return;
    bool given = get && !get(&p, n * size, PORTABLE) && p;
    note_answer(n, w->age, given);
    for (size_t i = 0; given && i < n; i++)
        w->buffers[w->n++] = (struct buffer){ .bytes = (char *)p + i * size };
}

/* One that does not wait is no longer than a buffer. */
static size_t wanted_by(const struct way *w)
{
    size_t pieces = (w->copy->n + w->told->piece_bytes - 1) / w->told->piece_bytes;
    return pieces < w->told->n_buffers ? pieces : w->told->n_buffers;
}

/* Others may have them all, for ever even: then the copy is not ours. */
static bool take_buffers(struct way *w)
{
    size_t wanted = wanted_by(w);
    w->age = pool_age();
    take_free(w, wanted);
    if (w->n < wanted)
        take_new(w, wanted - w->n);
    for (int naps = 0; !w->n && naps < NAPS && pool_has_any(); naps++) {
        usleep(NAP_US);
        take_free(w, wanted);
    }
    return w->n > 0;
}

/* An event is of one device. */
static bool mark(struct buffer *b, const struct way *w)
{
    int (*create)(void **, unsigned) = (int (*)(void **, unsigned))real_get(HELP_EVENT_CREATE);
    int (*note)(void *, void *) = (int (*)(void *, void *))real_get(HELP_EVENT_RECORD);
    void **event = &b->events[w->device];
    if (create && note && !*event && create(event, NO_TIMING))
        *event = NULL;
    b->copied = *event;
    return *event && note && !note(*event, w->copy->stream);
}

static bool wait_for(struct buffer *b)
{
    stream_fn *wait = (stream_fn *)real_get(CALL_hipEventSynchronize);
    if (b->copied && (!wait || wait(b->copied)))
        return false;
    b->copied = NULL;
    return true;
}

/* If no event can show it, as for a stream of another device. */
static bool wait_for_stream(const struct copy *c)
{
    stream_fn *wait = (stream_fn *)real_get(CALL_hipStreamSynchronize);
    return wait && !wait(c->stream);
}

/* A buffer of which nothing is known is never used again. */
static bool mark_or_wait(struct buffer *b, const struct way *w)
{
    if (mark(b, w))
        return true;
    b->copied = NULL;
    if (!wait_for_stream(w->copy))
        b->bytes = NULL;
    return b->bytes;
}

static bool send(struct buffer *b, const struct way *w, size_t at, size_t n)
{
    copy_kind_stream_fn *copy = (copy_kind_stream_fn *)real_get(CALL_hipMemcpyAsync);
    int code = copy((char *)w->copy->to + at, b->bytes, n, COPY_TO_DEVICE, w->copy->stream);
    return mark_or_wait(b, w) && !code; /* also after a failure: the state is unknown */
}

/* One buffer is filled while the copies from the others run. */
static bool send_pieces(struct way *w)
{
    const struct copy *c = w->copy;
    for (size_t at = 0, i = 0; at < c->n; i++) {
        size_t n = c->n - at < w->told->piece_bytes ? c->n - at : w->told->piece_bytes;
        struct buffer *b = &w->buffers[i % w->n];
        if (!wait_for(b) || !read_source(b->bytes, (const char *)c->from + at, n) || !send(b, w, at, n))
            return false;
        at += n;
    }
    return true;
}

static bool wait_for_all(struct way *w)
{
    bool good = true;
    for (size_t i = 0; i < w->n; i++)
        good = wait_for(&w->buffers[i]) && good;
    return good;
}

/* If the call waits, it first waits for earlier work, which may be about to write the source: a host
 * function, or a kernel of a GPU that can. If it does not, an event must be able to show when a buffer is
 * free. */
static bool begin(struct way *w)
{
    struct buffer *b = &w->buffers[0];
    bool good = mark(b, w);
    if (w->waits)
        good = good ? wait_for(b) : wait_for_stream(w->copy);
    b->copied = NULL;
    return good;
}

static bool send_all(struct way *w)
{
    return begin(w) && send_pieces(w) && (!w->waits || wait_for_all(w));
}

static void give_all_back(const struct way *w)
{
    for (size_t i = w->n; i-- > 0;)
        if (w->buffers[i].bytes)
            give_back(&w->buffers[i], w->age);
}

static bool waits(const struct copy *c, const struct told *t)
{
    bool is_async = c->shape == COPY_STREAM || c->real == real_get(CALL_hipMemcpyAsync);
    return !is_async || c->n > SHORT || c->n > t->piece_bytes || t->runtime < READS_AT_ONCE;
}

/* False: nothing that the caller could see has happened, apart from bytes that the real copy will write
 * again. */
static bool stage(const struct copy *c, const struct told *t)
{
    int (*ask)(int *) = (int (*)(int *))real_get(HELP_DEVICE);
    struct record_counts *counts = recorder_counts();
    struct way w = { .copy = c, .told = t, .waits = waits(c, t) };
    if (!may_stage(c, t) || !real_get(CALL_hipMemcpyAsync) || !ask || ask(&w.device) || w.device < 0 ||
        w.device >= MOST_DEVICES)
        return false;
    bool done = take_buffers(&w) && send_all(&w);
    give_all_back(&w);
    counts->staged += done;
    counts->staged_bytes += done ? c->n : 0;
    counts->stage_failed += !done;
    return done;
}

static bool wants_staging(const struct copy *c, const struct told *t)
{
    return t->switches & SWITCH_STAGE && c->kind == COPY_TO_DEVICE && c->n >= LEAST && c->from && c->to &&
           ranges_is_pageable(c->from, c->n) && ranges_place(c->to, c->n) == PLACE_DEVICE;
}

/* --- once more, in pieces ------------------------------------------------------------------------------ */

/* Split into chunks, a copy that is too long would run into the memory after it: each side must lie in one
 * allocation of the device, or outside of all. */
static bool has_room(const struct copy *c)
{
    enum place to = ranges_place(c->to, c->n), from = ranges_place(c->from, c->n);
    bool needs_to = c->kind == COPY_TO_DEVICE, needs_from = c->kind == COPY_TO_HOST;
    return to != PLACE_ACROSS && from != PLACE_ACROSS && (to == PLACE_DEVICE || from == PLACE_DEVICE) &&
           (!needs_to || to == PLACE_DEVICE) && (!needs_from || from == PLACE_DEVICE);
}

static bool may_retry(const struct copy *c, const struct told *t, int code)
{
    bool is_host = c->kind == COPY_TO_DEVICE || c->kind == COPY_TO_HOST || c->kind == COPY_DEFAULT;
    return t->switches & SWITCH_RETRY && is_host && c->n >= LEAST && c->from && c->to &&
           (code == GPU_INVALID_VALUE || code == GPU_OUT_OF_MEMORY) && has_room(c);
}

static bool piece_again(const struct copy *c, const struct told *t, size_t at, size_t n)
{
    struct copy piece = *c;
    piece.to = (char *)c->to + at;
    piece.from = (const char *)c->from + at;
    piece.n = n;
    if (n < c->n && !copy_piece(&piece, 0, n))
        return true;
    return c->kind == COPY_TO_DEVICE && ranges_is_pageable(piece.from, n) && stage(&piece, t);
}

/* A piece may be short enough to be read at the call, where the whole would have waited for what was before
 * it. */
static bool retry(const struct copy *c, const struct told *t)
{
    struct record_counts *counts = recorder_counts();
    bool done = !waits(c, t) || wait_for_stream(c);
    for (size_t at = 0; done && at < c->n; at += t->piece_bytes)
        done = piece_again(c, t, at, c->n - at < t->piece_bytes ? c->n - at : t->piece_bytes);
    counts->retried++;
    counts->retry_failed += !done;
    return done;
}

static bool stage_apart(const struct copy *c, const struct told *t)
{
    int mode = begin_own();
    bool done = stage(c, t);
    end_own(mode);
    return done;
}

static bool retry_apart(const struct copy *c, const struct told *t)
{
    int mode = begin_own();
    bool done = !is_captured(c->stream) && retry(c, t);
    end_own(mode);
    return done;
}

/* Who has an error to ask for gets the copy as it is, since ours would take its place. A copy that failed is
 * made once more when nothing helped, so that its error is the last. */
int copy_run(const struct copy *c, const struct told *t)
{
    if (!t || c->n < LEAST || !(t->switches & (SWITCH_STAGE | SWITCH_RETRY)) || last_error(HELP_PEEK_ERROR))
        return copy_piece(c, 0, c->n);
    if (wants_staging(c, t) && stage_apart(c, t))
        return GPU_OK;
    int code = copy_piece(c, 0, c->n);
    if (!may_retry(c, t, code))
        return code;
    return retry_apart(c, t) ? GPU_OK : copy_piece(c, 0, c->n);
}
