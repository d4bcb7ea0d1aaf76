/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 1 << 20 }; /* not worth a look at the host */
static const uint64_t most_reserve = 16ULL << 30;

struct host {
    uint64_t total, available; /* bytes; 0: not known */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t changes; /* memory of the device that was taken or given back, in times */
static uint64_t flying;          /* bytes that the guard let through and that may not be taken yet */
static struct {
    struct host host;
    uint64_t tick_ns, changes; /* when it was read; 0: never */
} kept;

static uint64_t line_bytes(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? state_number(at + strlen(name)) * 1024 : 0;
}

static struct host read_host(const struct told *t)
{
    char text[1024];
    int fd = open(t->meminfo, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return (struct host){ line_bytes(text, "MemTotal:"), line_bytes(text, "MemAvailable:") };
}

/* A fifth, but no more than 16 GiB, unless we were told. */
static uint64_t reserve_bytes(const struct told *t, const struct host *h)
{
    if (t->reserve_bytes)
        return t->reserve_bytes;
    return h->total / 5 < most_reserve ? h->total / 5 : most_reserve;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Stands still for a millisecond or a few, and costs nearly nothing. */
static uint64_t tick_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

/* The host is asked once a tick, and again when the program has changed something itself. */
static struct host recent_host(const struct told *t)
{
    uint64_t tick = tick_ns(), now = changes;
    if (tick != kept.tick_ns || now != kept.changes) {
        kept.host = read_host(t);
        kept.tick_ns = tick;
        kept.changes = now;
    }
    return kept.host;
}

void memory_changed(void)
{
    changes++;
}

/* Nobody is refused for a figure that is not of this moment.  What other threads were just allowed is not in it yet. */
bool memory_refuses(const struct told *t, size_t n)
{
    if (n < SMALL)
        return false;
    state_own(true);
    pthread_mutex_lock(&lock);
    struct host h = read_host(t);
    uint64_t left = less(less(h.available, reserve_bytes(t, &h)), flying);
    bool refuses = h.total && h.available && left < n;
    flying += refuses ? 0 : n;
    pthread_mutex_unlock(&lock);
    state_own(false);
    return refuses;
}

void memory_returned(size_t n)
{
    if (n < SMALL)
        return;
    pthread_mutex_lock(&lock);
    flying -= n;
    pthread_mutex_unlock(&lock);
}

void memory_tell(const struct told *t, size_t *free_bytes, size_t *total_bytes)
{
    if (free_bytes) {
        state_own(true);
        pthread_mutex_lock(&lock);
        struct host h = recent_host(t);
        pthread_mutex_unlock(&lock);
        state_own(false);
        uint64_t left = less(t->budget_bytes, ranges_device_bytes());
        uint64_t host = less(h.available, reserve_bytes(t, &h));
        *free_bytes = h.total && h.available && host < left ? host : left;
    }
    if (total_bytes)
        *total_bytes = t->budget_bytes;
    recorder_counts()->told++;
}

void memory_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    flying = 0;
    kept.tick_ns = 0;
}
