/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "os/thread.h"
#include <pthread.h>
#include <stdbool.h>

enum { MOST_THREADS = 256 };

struct job {
    size_t n;
    int (*fn)(void *context, size_t piece, struct cairn_error *err);
    void *context;
    size_t next; /* atomic */
    bool failed; /* atomic: tells the others to stop */
    pthread_mutex_t lock;
    size_t failed_piece;
    struct cairn_error err;
};

int parallel_threads(void)
{
    int n = os_cpus();
    return n > MOST_THREADS ? MOST_THREADS : n;
}

static void keep_error(struct job *j, size_t piece, const struct cairn_error *err)
{
    pthread_mutex_lock(&j->lock);
    if (!j->failed || piece < j->failed_piece) {
        j->failed_piece = piece;
        j->err = *err;
    }
    __atomic_store_n(&j->failed, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&j->lock);
}

static void *work(void *arg)
{
    struct job *j = arg;
    while (!__atomic_load_n(&j->failed, __ATOMIC_ACQUIRE)) {
        size_t piece = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED);
        struct cairn_error err = { 0 };
        if (piece >= j->n)
            break;
        if (j->fn(j->context, piece, &err))
            keep_error(j, piece, &err);
    }
    return NULL;
}

int parallel_for(size_t n, int threads, int (*fn)(void *context, size_t piece, struct cairn_error *err),
                 void *context, struct cairn_error *err)
{
    struct job j = { .n = n, .fn = fn, .context = context, .lock = PTHREAD_MUTEX_INITIALIZER };
    pthread_t others[MOST_THREADS];
    size_t want = (size_t)(threads > 0 && threads < MOST_THREADS ? threads : parallel_threads());
    if (want > n)
        want = n;
    /* Fewer threads than requested is only slower. */
    size_t started = 0;
    while (started + 1 < want && !os_thread_start(&others[started], work, &j))
        started++;
    work(&j);
    for (size_t i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    if (j.failed)
        *err = j.err;
    return j.failed ? -1 : 0;
}
