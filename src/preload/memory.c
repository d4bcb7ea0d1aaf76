/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 1 << 20 }; /* not worth a look at the host */
enum { MOST_FLIGHTS = 64, NAP_MS = 10, MOST_NAPS = 300 };
static const uint64_t most_reserve = 16ULL << 30;

struct host {
    bool is_known;
    uint64_t total, available; /* bytes */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t changes; /* memory of the device that was taken or given back, in times */
static struct {
    int thread; /* 0: none */
    size_t n;
} flights[MOST_FLIGHTS]; /* what the guard let through and may not be taken yet: one a thread */
static struct {
    struct host host;
    uint64_t tick_ns, changes; /* when it was read; 0: never */
} kept;

static bool find_line(const char *text, const char *name, uint64_t *bytes)
{
    const char *at = strstr(text, name);
    *bytes = at ? state_number(at + strlen(name)) * 1024 : 0;
    return at;
}

static struct host read_host(const struct told *t)
{
    char text[1024];
    int fd = open(t->meminfo, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    struct host h = { 0 };
    h.is_known = find_line(text, "MemTotal:", &h.total) && find_line(text, "MemAvailable:", &h.available);
    return h;
}

/* A fifth, but no more than 16 GiB, unless configured. */
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

static int this_thread(void)
{
    return (int)syscall(SYS_gettid);
}

/* One that was cancelled inside of the runtime does not come back. */
static bool is_there(int thread)
{
    return !syscall(SYS_tgkill, getpid(), thread, 0) || errno != ESRCH;
}

/* What other threads were just allowed. */
static uint64_t flying(int self)
{
    uint64_t n = 0;
    for (size_t i = 0; i < MOST_FLIGHTS; i++) {
        if (!flights[i].thread || flights[i].thread == self)
            continue;
        if (is_there(flights[i].thread))
            n += flights[i].n;
        else
            flights[i].thread = 0;
    }
    return n;
}

/* In the place of one that it never came back from, if there is one. */
static void note_flight(int self, size_t n)
{
    size_t to = MOST_FLIGHTS;
    for (size_t i = 0; i < MOST_FLIGHTS; i++) {
        if (flights[i].thread == self || (!flights[i].thread && to == MOST_FLIGHTS))
            to = i;
        if (flights[i].thread == self)
            break;
    }
    if (to == MOST_FLIGHTS)
        return;
    flights[to].thread = self;
    flights[to].n = n;
}

enum answer { FITS, IS_CROWDED, IS_TOO_MUCH };

/* Nobody is refused for a figure that is not of this moment. */
static enum answer answer_now(const struct told *t, size_t n, int self)
{
    struct host h = read_host(t);
    uint64_t left = less(h.available, reserve_bytes(t, &h));
    if (!h.is_known)
        return FITS;
    if (left < n)
        return IS_TOO_MUCH;
    return less(left, flying(self)) < n ? IS_CROWDED : FITS;
}

/* The host's figure may already include pending allocations, fully or in part: only their return settles it.
 * */
bool memory_refuses(const struct told *t, size_t n)
{
    if (n < SMALL)
        return false;
    int saved = errno, self = this_thread();
    enum answer answer = IS_CROWDED;
    state_own(true);
    for (int naps = 0; answer == IS_CROWDED && naps <= MOST_NAPS; naps++) {
        if (naps)
            usleep(NAP_MS * 1000);
        pthread_mutex_lock(&lock);
        answer = answer_now(t, n, self);
        if (answer == FITS)
            note_flight(self, n);
        pthread_mutex_unlock(&lock);
    }
    state_own(false);
    errno = saved;
    return answer != FITS;
}

void memory_returned(size_t n)
{
    if (n < SMALL)
        return;
    int self = this_thread();
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST_FLIGHTS; i++)
        if (flights[i].thread == self)
            flights[i].thread = 0;
    pthread_mutex_unlock(&lock);
}

/* --- pools of the runtime ------------------------------------------------------------------------------ */

enum { POOL_RESERVED = 5, POOL_USED = 7 }; /* attributes */

/* Errors of our own calls are not reported. */
static bool is_good(int code)
{
    int (*take_back)(void) = (int (*)(void))real_get(HELP_LAST_ERROR);
    if (code && take_back)
        take_back();
    return !code;
}

static bool is_captured(void *stream)
{
    int (*ask)(void *, int *) = (int (*)(void *, int *))real_get(HELP_IS_CAPTURING);
    int status = 0;
    return ask && (!is_good(ask(stream, &status)) || status);
}

static bool find_pool(struct memory_pool *p)
{
    int (*device_of)(void *, int *) = (int (*)(void *, int *))real_get(HELP_STREAM_DEVICE);
    int (*device_now)(int *) = (int (*)(int *))real_get(HELP_DEVICE);
    int (*pool_of)(void **, int) = (int (*)(void **, int))real_get(HELP_POOL);
    int device;
    if (p->pool || !pool_of)
        return p->pool;
    bool known =
        device_of ? is_good(device_of(p->stream, &device)) : device_now && is_good(device_now(&device));
    return known && is_good(pool_of(&p->pool, device)) && p->pool;
}

static uint64_t pool_bytes(const struct memory_pool *p, int attribute)
{
    int (*ask)(void *, int, void *) = (int (*)(void *, int, void *))real_get(HELP_POOL_ATTRIBUTE);
    uint64_t n = 0;
    return ask && is_good(ask(p->pool, attribute, &n)) ? n : 0;
}

bool memory_pool_lends(struct memory_pool *p, size_t n)
{
    if (!p->is_one)
        return false;
    state_own(true);
    bool lends = is_captured(p->stream);
    if (!lends && find_pool(p)) {
        uint64_t held = pool_bytes(p, POOL_RESERVED);
        lends = less(held, pool_bytes(p, POOL_USED)) >= n;
        p->held = lends ? held : 0;
    }
    state_own(false);
    return lends;
}

void memory_pool_settle(const struct memory_pool *p)
{
    int (*trim)(void *, size_t) = (int (*)(void *, size_t))real_get(HELP_POOL_TRIM);
    if (!p->held)
        return;
    state_own(true);
    if (trim && pool_bytes(p, POOL_RESERVED) > p->held)
        is_good(trim(p->pool, 0));
    state_own(false);
}

/* --- what is reported ---------------------------------------------------------------------------------- */

/* Where not all is known that was taken, the runtime may know of less. */
void memory_report(const struct told *t, size_t *free_bytes, size_t *total_bytes)
{
    if (free_bytes) {
        uint64_t said = *free_bytes;
        bool is_whole;
        state_own(true);
        pthread_mutex_lock(&lock);
        struct host h = recent_host(t);
        pthread_mutex_unlock(&lock);
        state_own(false);
        uint64_t left = less(t->budget_bytes, ranges_device_bytes(&is_whole));
        uint64_t host = less(h.available, reserve_bytes(t, &h));
        if (!is_whole && said < left)
            left = said;
        *free_bytes = h.is_known && host < left ? host : left;
    }
    if (total_bytes)
        *total_bytes = t->budget_bytes;
    recorder_counts()->told++;
}

void memory_forget(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    memset(flights, 0, sizeof(flights));
    kept.tick_ns = 0;
}
