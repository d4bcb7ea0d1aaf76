/* SPDX-License-Identifier: Apache-2.0 */
#include "run/recorder.h"

#include "os/fault.h"
#include "os/thread.h"
#include "os/file.h"
#include "run/log_parts.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 1000, PIECE_BYTES = 256 << 10 };

struct log_file {
    char *path; /* NULL: none */
    int fd;
    unsigned how;             /* OS_NO_LINK or 0 */
    uint64_t size, rotate_at; /* rotate_at 0: never */
};

/* A thread that reads the ring at its own pace. */
struct reader {
    struct recorder *recorder;
    void (*keep)(struct recorder *r, const char *bytes, size_t n);
    void (*idle)(struct recorder *r); /* all was read */
    long gather_ms; /* waits this long for more bytes, since a wake-up per line slows the trainer */
    pthread_t thread;
    bool started;
    pthread_cond_t filled;
    uint64_t at; /* under the lock */
};

struct recorder {
    struct log_file log, copy;
    struct diagnoser *diagnoser;
    struct reader readers[2];
    size_t n_readers;
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    /* Under the lock. */
    uint64_t put; /* bytes so far; byte i lies at i % RECORDER_RING_BYTES */
    uint64_t lost, lost_said;
    bool impatient;     /* the wait for space timed out; do not wait again until there is some */
    const void *writer; /* of the last byte */
    bool in_line;       /* that was no end of a line */
    bool stop, trouble_said;
    char trouble[256];
    atomic_bool saw_step;
    char ring[RECORDER_RING_BYTES];
};

/* Closes the file for good and keeps the reason for recorder_trouble. */
static void give_up(struct recorder *r, struct log_file *f, const char *what)
{
    int e = errno;
    pthread_mutex_lock(&r->lock);
    if (!r->trouble[0])
        snprintf(r->trouble, sizeof(r->trouble), "%s %s: %s", what, f->path, strerror(e));
    pthread_mutex_unlock(&r->lock);
    fd_close(&f->fd);
    f->fd = -1;
}

static void log_open(struct recorder *r, struct log_file *f)
{
    struct stat st;
    if (!f->path)
        return;
    f->fd = os_open(f->path, OS_APPEND | OS_CREATE | OS_PRIVATE | f->how);
    if (f->fd < 0)
        give_up(r, f, "open");
    else if (!fstat(f->fd, &st))
        f->size = (uint64_t)st.st_size;
}

static void log_rotate(struct recorder *r, struct log_file *f)
{
    char aside[4096];
    struct stat st;
    snprintf(aside, sizeof(aside), "%s.first", f->path);
    if (!access(aside, F_OK)) {
        snprintf(aside, sizeof(aside), "%s.previous", f->path);
        if (!stat(aside, &st))
            log_parts_drop(f->path, (uint64_t)st.st_size);
    }
    close(f->fd);
    f->fd = -1;
    f->size = 0;
    if (os_rename(f->path, aside))
        give_up(r, f, "rename");
    else
        log_open(r, f);
}

static void log_write(struct recorder *r, struct log_file *f, const char *bytes, size_t n)
{
    if (f->fd >= 0 && f->rotate_at && f->size + n > f->rotate_at)
        log_rotate(r, f);
    f->size += n;
    while (f->fd >= 0 && n) {
        ssize_t done = fault_hit() ? -1 : write(f->fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            give_up(r, f, "write");
            return;
        }
        bytes += done;
        n -= (size_t)done;
    }
}

static void write_logs(struct recorder *r, const char *bytes, size_t n)
{
    log_write(r, &r->log, bytes, n);
    log_write(r, &r->copy, bytes, n);
}

/* Marks the gap in the log itself. */
static void write_gap(struct recorder *r)
{
    char text[128];
    pthread_mutex_lock(&r->lock);
    uint64_t lost = r->lost - r->lost_said;
    r->lost_said = r->lost;
    pthread_mutex_unlock(&r->lock);
    int n = snprintf(text, sizeof(text), "\n[cairn: %llu bytes are missing here: the disk was too slow]\n",
                     (unsigned long long)lost);
    if (lost)
        write_logs(r, text, (size_t)n);
}

static void diagnose(struct recorder *r, const char *bytes, size_t n)
{
    diagnoser_feed(r->diagnoser, bytes, n);
    if (!atomic_load(&r->saw_step) && diagnoser_saw_step(r->diagnoser))
        atomic_store(&r->saw_step, true);
}

/* A deadline on the clock of pthread_cond_timedwait. */
static struct timespec after_ms(long ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ms % 1000 * 1000000;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return t;
}

/* Under the lock: waits for a byte, then a while for more. */
static void wait_for_bytes(struct recorder *r, struct reader *me)
{
    while (!r->stop && r->put == me->at)
        pthread_cond_wait(&me->filled, &r->lock);
    struct timespec until = after_ms(me->gather_ms);
    while (!r->stop && r->put - me->at < PIECE_BYTES)
        if (pthread_cond_timedwait(&me->filled, &r->lock, &until))
            return;
}

/* Under the lock: free space, by the slowest reader. */
static size_t room_in(const struct recorder *r)
{
    size_t room = RECORDER_RING_BYTES;
    for (size_t i = 0; i < r->n_readers; i++) {
        size_t its = RECORDER_RING_BYTES - (size_t)(r->put - r->readers[i].at);
        room = its < room ? its : room;
    }
    return room;
}

/* Under the lock, which is released meanwhile. */
static void read_piece(struct recorder *r, struct reader *me)
{
    size_t at = me->at % RECORDER_RING_BYTES, n = RECORDER_RING_BYTES - at;
    n = n < r->put - me->at ? n : (size_t)(r->put - me->at);
    n = n < PIECE_BYTES ? n : PIECE_BYTES;
    pthread_mutex_unlock(&r->lock);
    me->keep(r, r->ring + at, n);
    pthread_mutex_lock(&r->lock);
    me->at += n;
    r->impatient &= !room_in(r);
    pthread_cond_broadcast(&r->emptied);
}

static void *read_all(void *context)
{
    struct reader *me = context;
    struct recorder *r = me->recorder;
    pthread_mutex_lock(&r->lock);
    while (r->put != me->at || !r->stop) {
        if (r->put == me->at) {
            wait_for_bytes(r, me);
            continue;
        }
        read_piece(r, me);
        if (r->put != me->at || !me->idle)
            continue;
        pthread_mutex_unlock(&r->lock);
        me->idle(r);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Under the lock: waits for space, at most one second. */
static void wait_for_room(struct recorder *r)
{
    if (room_in(r))
        return;
    struct timespec until = after_ms(PATIENCE_MS);
    while (!room_in(r) && !r->impatient)
        r->impatient = pthread_cond_timedwait(&r->emptied, &r->lock, &until) == ETIMEDOUT;
}

/* Under the lock: when all was read, starts again at the beginning of the ring, so that few of its pages
 * are used. */
static void rewind_if_empty(struct recorder *r)
{
    if (room_in(r) < RECORDER_RING_BYTES)
        return;
    r->put += (RECORDER_RING_BYTES - r->put % RECORDER_RING_BYTES) % RECORDER_RING_BYTES;
    for (size_t i = 0; i < r->n_readers; i++)
        r->readers[i].at = r->put;
}

/* Under the lock: wakes those who wait for a first byte or for a whole piece. */
static void tell_readers(struct recorder *r, size_t more)
{
    for (size_t i = 0; i < r->n_readers; i++) {
        uint64_t had = r->put - r->readers[i].at;
        if (!had || (had < PIECE_BYTES && had + more >= PIECE_BYTES))
            pthread_cond_signal(&r->readers[i].filled);
    }
    r->put += more;
}

/* Under the lock. */
static void put(struct recorder *r, const char *bytes, size_t n)
{
    while (n) {
        wait_for_room(r);
        rewind_if_empty(r);
        size_t room = room_in(r), at = r->put % RECORDER_RING_BYTES;
        if (!room) {
            r->lost += n;
            break;
        }
        size_t part = RECORDER_RING_BYTES - at;
        part = part < room ? part : room;
        part = part < n ? part : n;
        memcpy(r->ring + at, bytes, part);
        tell_readers(r, part);
        bytes += part;
        n -= part;
    }
}

void recorder_put(struct recorder *r, const void *writer, const char *bytes, size_t n)
{
    if (!n)
        return;
    pthread_mutex_lock(&r->lock);
    if (r->in_line && writer != r->writer)
        put(r, "\n", 1);
    put(r, bytes, n);
    r->writer = writer;
    r->in_line = bytes[n - 1] != '\n';
    pthread_mutex_unlock(&r->lock);
}

bool recorder_saw_step(struct recorder *r)
{
    return atomic_load(&r->saw_step);
}

const char *recorder_trouble(struct recorder *r)
{
    pthread_mutex_lock(&r->lock);
    bool news = r->trouble[0] && !r->trouble_said;
    r->trouble_said |= news;
    pthread_mutex_unlock(&r->lock);
    return news ? r->trouble : NULL;
}

void recorder_free(struct recorder *r)
{
    if (!r)
        return;
    fd_close(&r->log.fd);
    fd_close(&r->copy.fd);
    free(r->log.path);
    free(r->copy.path);
    pthread_mutex_destroy(&r->lock);
    pthread_cond_destroy(&r->emptied);
    for (size_t i = 0; i < r->n_readers; i++)
        pthread_cond_destroy(&r->readers[i].filled);
    free(r);
}

static struct recorder *recorder_new(const struct recorder_options *o)
{
    struct recorder *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->emptied, NULL);
    r->diagnoser = o->diagnoser;
    r->log = (struct log_file){ .path = o->log ? strdup(o->log) : NULL,
                                .fd = -1,
                                .how = OS_NO_LINK,
                                .rotate_at = o->rotate_bytes ? o->rotate_bytes : RECORDER_ROTATE_BYTES };
    r->copy = (struct log_file){ .path = o->copy ? strdup(o->copy) : NULL, .fd = -1 };
    r->readers[r->n_readers++] = (struct reader){ .keep = write_logs, .idle = write_gap, .gather_ms = 20 };
    if (r->diagnoser)
        r->readers[r->n_readers++] = (struct reader){ .keep = diagnose, .gather_ms = 500 };
    for (size_t i = 0; i < r->n_readers; i++) {
        r->readers[i].recorder = r;
        pthread_cond_init(&r->readers[i].filled, NULL);
    }
    return r;
}

int recorder_start(struct recorder **out, const struct recorder_options *o, struct cairn_error *err)
{
    struct recorder *r = recorder_new(o);
    if (!r)
        return cairn_fail(err, CAIRN_ENOMEM, "out of memory for the buffer of the log");
    log_open(r, &r->log);
    log_open(r, &r->copy);
    for (size_t i = 0; i < r->n_readers; i++) {
        struct reader *me = &r->readers[i];
        int e = fault_hit() ? errno : os_thread_start(&me->thread, read_all, me);
        if (e) {
            recorder_stop(r);
            recorder_free(r);
            errno = e;
            return cairn_fail_errno(err, "start a thread");
        }
        me->started = true;
    }
    *out = r;
    return 0;
}

uint64_t recorder_stop(struct recorder *r)
{
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    for (size_t i = 0; i < r->n_readers; i++)
        pthread_cond_signal(&r->readers[i].filled);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < r->n_readers; i++)
        if (r->readers[i].started)
            pthread_join(r->readers[i].thread, NULL);
    return r->lost;
}
