/* SPDX-License-Identifier: Apache-2.0
 * Copies to the device from memory that is not pinned.  The runtime would pin the source for the time of the copy, which
 * for a mapped file is slow, fails, or never ends; here the bytes pass through a ring of buffers that are pinned for
 * good, one of which is filled while the others are on their way.
 *
 * The stream has come to rest before the source is read, so what it has still to write there is there; and the
 * call returns when all has arrived, which is what the runtime does with such memory too. */
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

enum { LEAST = 64 << 10 }; /* what is smaller the runtime stages itself */
enum { PORTABLE = 1 };     /* pinned for every device */
enum { NO_TIMING = 2 };    /* of an event */

struct buffer {
    char *bytes;
    void *copied;      /* an event; NULL: there is none */
    void *stream;      /* of the last copy */
    bool busy, marked; /* that copy may still run; the event tells when it does not */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer buffers[MOST_BUFFERS];
static size_t n_buffers, buffer_bytes;
static bool no_buffers; /* asked for, and not given */
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
    memset(buffers, 0, sizeof(buffers));
    n_buffers = 0;
    no_buffers = false;
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

/* One for which there is no room the runtime itself is asked about. */
void copy_capture_begins(void *stream)
{
    pthread_mutex_lock(&capture_lock);
    if (n_captured < sizeof(captured) / sizeof(captured[0]))
        captured[n_captured++] = stream;
    pthread_mutex_unlock(&capture_lock);
}

void copy_capture_ends(void *stream)
{
    pthread_mutex_lock(&capture_lock);
    for (size_t i = n_captured; i-- > 0;) {
        if (captured[i] != stream)
            continue;
        captured[i] = captured[--n_captured];
        break;
    }
    pthread_mutex_unlock(&capture_lock);
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

/* --- what must not be seen of our own calls -------------------------------------------------------------------------- */

/* A runtime remembers the last error until somebody asks for it.  One that we provoked is taken back, unless the program
 * had one there before. */
static int last_error(enum call which)
{
    int (*ask)(void) = (int (*)(void))real_get(which);
    return ask ? ask() : GPU_OK;
}

static bool had_error(void)
{
    return last_error(HELP_PEEK_ERROR) != GPU_OK;
}

static void take_error_back(bool had)
{
    if (!had)
        last_error(HELP_LAST_ERROR);
}

/* A stream that is captured takes no waiting, and while one is, no memory may be asked for. */
static bool is_captured(void *stream)
{
    int (*ask)(void *, int *) = (int (*)(void *, int *))real_get(HELP_IS_CAPTURING);
    int status = 0;
    return n_captured > 0 || (ask && (ask(stream, &status) || status));
}

/* --- the way through the buffers --------------------------------------------------------------------------------------- */

static bool have_buffers(const struct told *t)
{
    int (*get)(void **, size_t, unsigned) = (int (*)(void **, size_t, unsigned))real_get(CALL_hipHostMalloc);
    void *p = NULL;
    if (buffers[0].bytes || no_buffers)
        return buffers[0].bytes;
    no_buffers = !get || get(&p, t->n_buffers * t->piece_bytes, PORTABLE) || !p;
    if (no_buffers)
        return false;
    buffer_bytes = t->piece_bytes;
    n_buffers = t->n_buffers;
    for (size_t i = 0; i < n_buffers; i++)
        buffers[i].bytes = (char *)p + i * buffer_bytes;
    return true;
}

/* Without a crash where the source is no memory of the host after all.  Old kernels cannot be asked to make pages
 * present; there, and for odd mappings, the kernel copies. */
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

/* Where our last copy from a buffer ends in the stream: others may have given it more to do since, and we hold the lock.
 * An event of another device cannot be used; then the stream is waited for. */
static bool mark(struct buffer *b, void *stream)
{
    int (*create)(void **, unsigned) = (int (*)(void **, unsigned))real_get(HELP_EVENT_CREATE);
    int (*note)(void *, void *) = (int (*)(void *, void *))real_get(HELP_EVENT_RECORD);
    if (create && note && !b->copied && create(&b->copied, NO_TIMING))
        b->copied = NULL;
    return b->copied && note && !note(b->copied, stream);
}

/* Until it may be filled again. */
static bool wait_for(struct buffer *b)
{
    stream_fn *wait_event = (stream_fn *)real_get(CALL_hipEventSynchronize);
    stream_fn *wait = (stream_fn *)real_get(CALL_hipStreamSynchronize);
    if (!b->busy)
        return true;
    b->busy = false;
    return b->marked && wait_event ? !wait_event(b->copied) : !wait(b->stream);
}

static bool send(struct buffer *b, const struct copy *c, size_t at, size_t n, copy_kind_stream_fn *copy)
{
    b->busy = true; /* also when it fails: who knows */
    b->marked = false;
    b->stream = c->stream;
    if (copy((char *)c->to + at, b->bytes, n, COPY_TO_DEVICE, c->stream))
        return false;
    b->marked = mark(b, c->stream);
    return true;
}

/* One buffer is filled while the copies from the others run. */
static bool stage_pieces(const struct copy *c, copy_kind_stream_fn *copy)
{
    for (size_t at = 0, i = 0; at < c->n; i++) {
        size_t n = c->n - at < buffer_bytes ? c->n - at : buffer_bytes;
        struct buffer *b = &buffers[i % n_buffers];
        if (!wait_for(b) || !read_source(b->bytes, (const char *)c->from + at, n) || !send(b, c, at, n, copy))
            return false;
        at += n;
    }
    return true;
}

/* Also after a failure: the buffers must not be on their way when the next one fills them. */
static bool wait_for_all(void)
{
    bool good = true;
    for (size_t i = 0; i < n_buffers; i++)
        good = wait_for(&buffers[i]) && good;
    return good;
}

/* False: nothing that the caller could see has happened, apart from bytes that the real copy will write again.  True: code is the
 * answer; a stream that cannot be waited for has an error of its own. */
static bool stage(const struct copy *c, const struct told *t, int *code)
{
    stream_fn *wait = (stream_fn *)real_get(CALL_hipStreamSynchronize);
    copy_kind_stream_fn *copy = (copy_kind_stream_fn *)real_get(CALL_hipMemcpyAsync);
    struct record_counts *counts = recorder_counts();
    if (!wait || !copy || is_captured(c->stream))
        return false;
    *code = wait(c->stream); /* without the lock: it may take for ever */
    if (*code)
        return true;
    pthread_mutex_lock(&lock);
    bool done = have_buffers(t) && stage_pieces(c, copy);
    done = wait_for_all() && done;
    pthread_mutex_unlock(&lock);
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

/* --- once more, in pieces ---------------------------------------------------------------------------------------------- */

/* In pieces a copy that is too long would go on in what lies behind: every side must be in one allocation of the device, or
 * clear of all. */
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
           (code == GPU_INVALID_VALUE || code == GPU_OUT_OF_MEMORY) && !is_captured(c->stream) && has_room(c);
}

static bool piece_again(const struct copy *c, const struct told *t, size_t at, size_t n)
{
    struct copy piece = *c;
    int code = GPU_OK;
    piece.to = (char *)c->to + at;
    piece.from = (const char *)c->from + at;
    piece.n = n;
    if (n < c->n && !copy_piece(&piece, 0, n))
        return true;
    return c->kind == COPY_TO_DEVICE && ranges_is_pageable(piece.from, n) && stage(&piece, t, &code) && !code;
}

static int retry(const struct copy *c, const struct told *t, int code)
{
    struct record_counts *counts = recorder_counts();
    counts->retried++;
    for (size_t at = 0; at < c->n; at += t->piece_bytes) {
        size_t n = c->n - at < t->piece_bytes ? c->n - at : t->piece_bytes;
        if (piece_again(c, t, at, n))
            continue;
        counts->retry_failed++;
        return code;
    }
    return GPU_OK;
}

int copy_run(const struct copy *c, const struct told *t)
{
    if (!t || c->n < LEAST || !(t->switches & (SWITCH_STAGE | SWITCH_RETRY)))
        return copy_piece(c, 0, c->n);
    state_own(true);
    bool had = had_error(), wants = wants_staging(c, t);
    int code = GPU_OK;
    bool staged = wants && stage(c, t, &code);
    if (wants && !(staged && code))
        take_error_back(had);
    state_own(false);
    if (staged)
        return code;
    code = copy_piece(c, 0, c->n);
    state_own(true);
    int again = may_retry(c, t, code) ? retry(c, t, code) : code;
    if (code && again == GPU_OK)
        take_error_back(had);
    state_own(false);
    return again;
}
