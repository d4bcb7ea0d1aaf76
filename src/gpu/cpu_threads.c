/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cpu_threads.h"

#include "os/thread.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MOST_THREADS = 256, SPINS = 2000 /* about 20 µs */ };

struct cpu_threads {
    int n_threads; /* without the caller's */
    pthread_t threads[MOST_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int sleepers;              /* under lock */
    unsigned call;             /* atomic: counts cpu_threads_run; a change means work */
    bool ending;               /* atomic */
    size_t pieces, next, busy; /* next and busy are atomic */
    void (*fn)(void *context, size_t piece);
    void *context;
};

static void pause_a_moment(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static void run_pieces(struct cpu_threads *c)
{
    for (;;) {
        size_t piece = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
        if (piece >= c->pieces)
            return;
        c->fn(c->context, piece);
    }
}

static unsigned wait_for_call(struct cpu_threads *c, unsigned seen)
{
    for (int i = 0; i < SPINS; i++) {
        unsigned call = __atomic_load_n(&c->call, __ATOMIC_ACQUIRE);
        if (call != seen)
            return call;
        pause_a_moment();
    }
    pthread_mutex_lock(&c->lock);
    c->sleepers++;
    while (__atomic_load_n(&c->call, __ATOMIC_ACQUIRE) == seen)
        pthread_cond_wait(&c->wake, &c->lock);
    c->sleepers--;
    pthread_mutex_unlock(&c->lock);
    return __atomic_load_n(&c->call, __ATOMIC_ACQUIRE);
}

static void *live(void *arg)
{
    struct cpu_threads *c = arg;
    for (unsigned seen = 0;;) {
        seen = wait_for_call(c, seen);
        if (__atomic_load_n(&c->ending, __ATOMIC_ACQUIRE))
            return NULL;
        run_pieces(c);
        __atomic_fetch_sub(&c->busy, 1, __ATOMIC_RELEASE);
    }
}

static void announce(struct cpu_threads *c)
{
    pthread_mutex_lock(&c->lock);
    __atomic_fetch_add(&c->call, 1, __ATOMIC_RELEASE);
    if (c->sleepers)
        pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

struct cpu_threads *cpu_threads_new(int threads)
{
    struct cpu_threads *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    int want = threads > MOST_THREADS ? MOST_THREADS : threads;
    while (c->n_threads < want - 1 && !os_thread_start(&c->threads[c->n_threads], live, c))
        c->n_threads++;
    return c;
}

void cpu_threads_free(struct cpu_threads *c)
{
    if (!c)
        return;
    __atomic_store_n(&c->ending, true, __ATOMIC_RELEASE);
    announce(c);
    for (int i = 0; i < c->n_threads; i++)
        pthread_join(c->threads[i], NULL);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int cpu_threads_size(const struct cpu_threads *c)
{
    return c->n_threads + 1;
}

void cpu_threads_run(struct cpu_threads *c, size_t pieces, void (*fn)(void *context, size_t piece),
                     void *context)
{
    c->pieces = pieces;
    c->fn = fn;
    c->context = context;
    c->next = 0;
    bool alone = pieces < 2 || !c->n_threads;
    if (!alone) {
        __atomic_store_n(&c->busy, (size_t)c->n_threads, __ATOMIC_RELEASE);
        announce(c);
    }
    run_pieces(c);
    /* All threads must be done before the next call changes the job. */
    while (!alone && __atomic_load_n(&c->busy, __ATOMIC_ACQUIRE))
        pause_a_moment();
}
