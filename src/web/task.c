/* SPDX-License-Identifier: Apache-2.0 */
#include "web/task.h"

#include "os/thread.h"
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct task {
    struct tasks *all;
    void (*work)(void *context), (*done)(void *context);
    void *context;
    pthread_t thread;
    bool started, has_thread;
    bool ended; /* set by the thread, under the lock */
    struct task *next;
};

struct tasks {
    struct loop *loop;
    int ready;
    pthread_mutex_t lock;
    struct task *first; /* in the order of arrival */
    size_t running;
};

static void start_next(struct tasks *t);

static void *run(void *context)
{
    struct task *k = context;
    k->work(k->context);
    pthread_mutex_lock(&k->all->lock);
    k->ended = true;
    pthread_mutex_unlock(&k->all->lock);
    eventfd_write(k->all->ready, 1);
    return NULL;
}

/* The first that has ended, taken out of the list; NULL: none. */
static struct task *take_ended(struct tasks *t)
{
    pthread_mutex_lock(&t->lock);
    struct task **at = &t->first;
    while (*at && !(*at)->ended)
        at = &(*at)->next;
    struct task *k = *at;
    if (k)
        *at = k->next;
    pthread_mutex_unlock(&t->lock);
    return k;
}

static void some_ended(void *context)
{
    struct tasks *t = context;
    eventfd_t ignored;
    eventfd_read(t->ready, &ignored);
    for (struct task *k; (k = take_ended(t));) {
        if (k->has_thread)
            pthread_join(k->thread, NULL);
        t->running--;
        k->done(k->context);
        free(k);
    }
    start_next(t);
}

/* Without a thread it is done here and now. */
static void start_next(struct tasks *t)
{
    for (struct task *k = t->first; k && t->running < TASK_AT_ONCE; k = k->next) {
        if (k->started)
            continue;
        k->started = true;
        t->running++;
        k->has_thread = !os_thread_start(&k->thread, run, k);
        if (!k->has_thread)
            run(k);
    }
}

int tasks_open(struct loop *l, struct tasks **out, struct cairn_error *err)
{
    struct tasks *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    t->loop = l;
    pthread_mutex_init(&t->lock, NULL);
    t->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->ready < 0) {
        cairn_fail_errno(err, "eventfd");
        free(t);
        return -1;
    }
    loop_read(l, t->ready, some_ended, t);
    *out = t;
    return 0;
}

void tasks_close(struct tasks *t)
{
    if (!t)
        return;
    loop_forget(t->loop, t->ready);
    while (t->first) {
        struct task *k = t->first;
        t->first = k->next;
        if (k->has_thread)
            pthread_join(k->thread, NULL);
        free(k);
    }
    close(t->ready);
    free(t);
}

void task_run(struct tasks *t, void (*work)(void *context), void (*done)(void *context), void *context)
{
    struct task *k = calloc(1, sizeof(*k));
    if (!k)
        abort();
    *k = (struct task){ .all = t, .work = work, .done = done, .context = context };
    pthread_mutex_lock(&t->lock);
    struct task **end = &t->first;
    while (*end)
        end = &(*end)->next;
    *end = k;
    pthread_mutex_unlock(&t->lock);
    start_next(t);
}
