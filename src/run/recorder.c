/* SPDX-License-Identifier: Apache-2.0 */
#include "run/recorder.h"

#include "base/fault.h"
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

enum { PATIENCE_MS = 1000, GATHER_MS = 20, PIECE_BYTES = 256 << 10 };

struct log_file {
    char *path; /* NULL: none */
    int fd;
    uint64_t size, rotate_at; /* rotate_at 0: never */
};

struct recorder {
    struct log_file log, copy;
    struct diagnoser *diagnoser;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled, emptied;
    /* Under the lock. */
    size_t head, used; /* bytes head … head+used of the ring wait to be written */
    uint64_t lost, lost_said;
    bool impatient; /* the writer had its second; nobody waits until there is room again */
    bool stop, trouble_said;
    char trouble[256];
    atomic_bool saw_step;
    char ring[RECORDER_RING_BYTES];
};

/* The file is closed and forgotten; the reason is kept for who asks. */
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
    f->fd = fault_hit() ? -1 : open(f->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (f->fd < 0)
        give_up(r, f, "open");
    else if (!fstat(f->fd, &st))
        f->size = (uint64_t)st.st_size;
}

static void log_rotate(struct recorder *r, struct log_file *f)
{
    char aside[4096];
    snprintf(aside, sizeof(aside), "%s.first", f->path);
    if (!access(aside, F_OK))
        snprintf(aside, sizeof(aside), "%s.previous", f->path);
    close(f->fd);
    f->fd = -1;
    f->size = 0;
    if (rename(f->path, aside))
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

static void keep(struct recorder *r, const char *bytes, size_t n)
{
    log_write(r, &r->log, bytes, n);
    log_write(r, &r->copy, bytes, n);
    if (!r->diagnoser)
        return;
    diagnoser_feed(r->diagnoser, bytes, n);
    if (!atomic_load(&r->saw_step) && diagnoser_saw_step(r->diagnoser))
        atomic_store(&r->saw_step, true);
}

/* Says in the log itself that something is missing there. */
static void keep_gap(struct recorder *r, uint64_t lost)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "\n[cairn: %llu bytes are missing here: the disk was too slow]\n",
                     (unsigned long long)lost);
    log_write(r, &r->log, text, (size_t)n);
    log_write(r, &r->copy, text, (size_t)n);
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

/* Under the lock: a trainer prints line by line, and to wake up for each of them would cost it a part of its core. */
static void wait_for_more(struct recorder *r)
{
    struct timespec until = after_ms(GATHER_MS);
    while (!r->stop && r->used < PIECE_BYTES)
        if (pthread_cond_timedwait(&r->filled, &r->lock, &until))
            return;
}

static void *write_all(void *context)
{
    struct recorder *r = context;
    pthread_mutex_lock(&r->lock);
    while (r->used || !r->stop) {
        if (!r->used) {
            pthread_cond_wait(&r->filled, &r->lock);
            wait_for_more(r);
            continue;
        }
        size_t n = RECORDER_RING_BYTES - r->head;
        n = n < r->used ? n : r->used;
        n = n < PIECE_BYTES ? n : PIECE_BYTES;
        pthread_mutex_unlock(&r->lock);
        keep(r, r->ring + r->head, n);
        pthread_mutex_lock(&r->lock);
        r->head = (r->head + n) % RECORDER_RING_BYTES;
        r->used -= n;
        r->impatient = false;
        pthread_cond_broadcast(&r->emptied);
        uint64_t lost = r->lost - r->lost_said;
        if (!lost || r->used)
            continue;
        r->lost_said = r->lost;
        pthread_mutex_unlock(&r->lock);
        keep_gap(r, lost);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Under the lock: waits for room, within reason. */
static void wait_for_room(struct recorder *r)
{
    if (r->used < RECORDER_RING_BYTES)
        return;
    struct timespec until = after_ms(PATIENCE_MS);
    while (r->used == RECORDER_RING_BYTES && !r->impatient)
        r->impatient = pthread_cond_timedwait(&r->emptied, &r->lock, &until) == ETIMEDOUT;
}

void recorder_put(struct recorder *r, const char *bytes, size_t n)
{
    pthread_mutex_lock(&r->lock);
    while (n) {
        wait_for_room(r);
        size_t room = RECORDER_RING_BYTES - r->used, at = (r->head + r->used) % RECORDER_RING_BYTES;
        if (!room) {
            r->lost += n;
            break;
        }
        size_t part = RECORDER_RING_BYTES - at;
        part = part < room ? part : room;
        part = part < n ? part : n;
        memcpy(r->ring + at, bytes, part);
        if (!r->used || (r->used < PIECE_BYTES && r->used + part >= PIECE_BYTES))
            pthread_cond_signal(&r->filled);
        r->used += part;
        bytes += part;
        n -= part;
    }
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
    pthread_cond_destroy(&r->filled);
    pthread_cond_destroy(&r->emptied);
    free(r);
}

int recorder_start(struct recorder **out, const struct recorder_options *o, struct cairn_error *err)
{
    struct recorder *r = calloc(1, sizeof(*r));
    if (!r)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to record a run");
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->filled, NULL);
    pthread_cond_init(&r->emptied, NULL);
    r->diagnoser = o->diagnoser;
    r->log = (struct log_file){ .path = o->log ? strdup(o->log) : NULL,
                                .fd = -1,
                                .rotate_at = o->rotate_bytes ? o->rotate_bytes : RECORDER_ROTATE_BYTES };
    r->copy = (struct log_file){ .path = o->copy ? strdup(o->copy) : NULL, .fd = -1 };
    log_open(r, &r->log);
    log_open(r, &r->copy);
    int e = fault_hit() ? errno : pthread_create(&r->thread, NULL, write_all, r);
    if (e) {
        recorder_free(r);
        errno = e;
        return cairn_fail_errno(err, "start a thread");
    }
    *out = r;
    return 0;
}

uint64_t recorder_stop(struct recorder *r)
{
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->filled);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    return r->lost;
}
