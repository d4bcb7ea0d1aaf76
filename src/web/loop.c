/* SPDX-License-Identifier: Apache-2.0 */
#include "web/loop.h"

#include "base/clock.h"
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    void (*ready)(void *context);
    void *context;
};

struct loop_timer {
    double at, every; /* every: 0 for a timer that fires once */
    void (*fire)(void *context);
    void *context;
    bool cancelled;
    struct loop_timer *next;
};

struct loop {
    struct pollfd *fd; /* -1: the place is free */
    struct entry *entry;
    size_t n, room;
    struct loop_timer *timers;
    int (*before)(void *context);
    void *before_context;
    bool stopped;
};

static void *grown(void *p, size_t size)
{
    void *out = realloc(p, size);
    if (!out)
        abort();
    return out;
}

int loop_open(struct loop **out, struct cairn_error *err)
{
    *out = calloc(1, sizeof(**out));
    return *out ? 0 : cairn_fail(err, CAIRN_ENOMEM, "no memory for the server's loop");
}

void loop_close(struct loop *l)
{
    if (!l)
        return;
    while (l->timers) {
        struct loop_timer *t = l->timers;
        l->timers = t->next;
        free(t);
    }
    free(l->fd);
    free(l->entry);
    free(l);
}

static void add(struct loop *l, int fd, short events, struct entry e)
{
    size_t i = 0;
    while (i < l->n && l->fd[i].fd >= 0)
        i++;
    if (i == l->room) {
        l->room = l->room ? l->room * 2 : 16;
        l->fd = grown(l->fd, l->room * sizeof(*l->fd));
        l->entry = grown(l->entry, l->room * sizeof(*l->entry));
    }
    l->fd[i] = (struct pollfd){ .fd = fd, .events = events };
    l->entry[i] = e;
    l->n = i == l->n ? l->n + 1 : l->n;
}

void loop_read(struct loop *l, int fd, void (*ready)(void *context), void *context)
{
    add(l, fd, POLLIN, (struct entry){ ready, context });
}

void loop_write(struct loop *l, int fd, void (*ready)(void *context), void *context)
{
    add(l, fd, POLLOUT, (struct entry){ ready, context });
}

void loop_forget(struct loop *l, int fd)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->fd[i].fd == fd && fd >= 0)
            l->fd[i] = (struct pollfd){ .fd = -1 };
}

static struct loop_timer *add_timer(struct loop *l, double seconds, double every, void (*fire)(void *context),
                                    void *context)
{
    struct loop_timer *t = grown(NULL, sizeof(*t));
    *t = (struct loop_timer){ clock_s() + seconds, every, fire, context, false, l->timers };
    l->timers = t;
    return t;
}

struct loop_timer *loop_after(struct loop *l, double seconds, void (*fire)(void *context), void *context)
{
    return add_timer(l, seconds, 0, fire, context);
}

struct loop_timer *loop_every(struct loop *l, double seconds, void (*fire)(void *context), void *context)
{
    return add_timer(l, seconds, seconds, fire, context);
}

/* It goes when no timer is being called. */
void loop_cancel(struct loop *l, struct loop_timer *t)
{
    (void)l;
    if (t)
        t->cancelled = true;
}

static void sweep_timers(struct loop *l)
{
    for (struct loop_timer **at = &l->timers; *at;) {
        struct loop_timer *t = *at;
        if (!t->cancelled) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        free(t);
    }
}

static void fire_timers(struct loop *l)
{
    double now = clock_s();
    for (struct loop_timer *t = l->timers; t; t = t->next) {
        if (t->cancelled || t->at > now)
            continue;
        t->cancelled = !t->every;
        t->at += t->every;
        if (t->every && t->at <= now) /* the machine slept: no volley of what was missed */
            t->at = now + t->every;
        t->fire(t->context);
    }
    sweep_timers(l);
}

/* In milliseconds, rounded up so that a timer is due when the wait ends. */
static int longest_wait(const struct loop *l)
{
    int most = l->before ? l->before(l->before_context) : -1;
    double now = clock_s();
    for (const struct loop_timer *t = l->timers; t; t = t->next) {
        if (t->cancelled)
            continue;
        double ms = t->at > now ? ceil((t->at - now) * 1e3) : 0;
        if (most < 0 || ms < most)
            most = ms < 3600e3 ? (int)ms : 3600 * 1000;
    }
    return most;
}

int loop_run(struct loop *l, struct cairn_error *err)
{
    while (!l->stopped) {
        int wait = longest_wait(l);
        if (l->stopped)
            break;
        int n = poll(l->fd, l->n, wait);
        if (n < 0 && errno != EINTR)
            return cairn_fail_errno(err, "poll");
        for (size_t i = 0, end = l->n; n > 0 && i < end; i++) {
            struct entry e = l->entry[i];
            if (l->fd[i].fd >= 0 && l->fd[i].revents) {
                l->fd[i].revents = 0;
                e.ready(e.context);
            }
        }
        fire_timers(l);
    }
    return 0;
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}

void loop_before_wait(struct loop *l, int (*before)(void *context), void *context)
{
    l->before = before;
    l->before_context = context;
}
