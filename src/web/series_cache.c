/* SPDX-License-Identifier: Apache-2.0 */
#include "web/series_cache.h"

#include "base/clock.h"
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct shared_series {
    char *path;
    pthread_mutex_t lock;
    struct run_series *series;
    size_t users, bytes;
    double used;
    struct shared_series *next;
};

struct series_cache {
    struct loop *loop;
    struct loop_timer *timer; /* while there are series */
    struct shared_series *first;
    size_t n;
};

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

static void drop(struct series_cache *c, struct shared_series *s)
{
    struct shared_series **at = &c->first;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    c->n--;
    run_series_free(s->series);
    pthread_mutex_destroy(&s->lock);
    free(s->path);
    free(s);
}

/* The one that was used longest ago and is not in use; NULL: none but `except`. */
static struct shared_series *oldest(const struct series_cache *c, const struct shared_series *except)
{
    struct shared_series *out = NULL;
    for (struct shared_series *s = c->first; s; s = s->next)
        if (s != except && !s->users && (!out || s->used < out->used))
            out = s;
    return out;
}

static size_t bytes_of(const struct series_cache *c)
{
    size_t bytes = 0;
    for (const struct shared_series *s = c->first; s; s = s->next)
        bytes += s->bytes;
    return bytes;
}

static void clean(void *context)
{
    struct series_cache *c = context;
    double now = clock_s();
    size_t before = c->n;
    for (struct shared_series *s; (s = oldest(c, NULL)) && s->used + SERIES_CACHE_IDLE_S < now;)
        drop(c, s);
    if (c->n < before)
        malloc_trim(0); /* a long run takes a hundred MiB */
    if (!c->n) {
        loop_cancel(c->loop, c->timer);
        c->timer = NULL;
    }
}

struct series_cache *series_cache_open(struct loop *l)
{
    struct series_cache *c = need(calloc(1, sizeof(*c)));
    c->loop = l;
    return c;
}

void series_cache_close(struct series_cache *c)
{
    if (!c)
        return;
    loop_cancel(c->loop, c->timer);
    while (c->first)
        drop(c, c->first);
    free(c);
}

struct shared_series *series_borrow(struct series_cache *c, const char *path)
{
    struct shared_series *s = c->first;
    while (s && strcmp(s->path, path))
        s = s->next;
    if (!s) {
        struct shared_series *old = c->n >= SERIES_CACHE_MOST ? oldest(c, NULL) : NULL;
        if (old)
            drop(c, old);
        s = need(calloc(1, sizeof(*s)));
        s->path = need(strdup(path));
        s->series = run_series_new();
        pthread_mutex_init(&s->lock, NULL);
        s->next = c->first;
        c->first = s;
        c->n++;
    }
    if (!c->timer)
        c->timer = loop_every(c->loop, 60, clean, c);
    s->users++;
    s->used = clock_s();
    return s;
}

void series_give_back(struct series_cache *c, struct shared_series *s)
{
    struct shared_series *old;
    s->users--;
    if (!s->users)
        s->bytes = run_series_bytes(s->series);
    while (bytes_of(c) > SERIES_CACHE_BYTES && (old = oldest(c, s)))
        drop(c, old);
    while (c->n > SERIES_CACHE_MOST && (old = oldest(c, s)))
        drop(c, old);
}

size_t series_cache_count(const struct series_cache *c)
{
    return c->n;
}

struct run_series *series_lock(struct shared_series *s)
{
    pthread_mutex_lock(&s->lock);
    return s->series;
}

void series_unlock(struct shared_series *s)
{
    pthread_mutex_unlock(&s->lock);
}
