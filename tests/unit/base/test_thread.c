/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "check.h"
#include <pthread.h>
#include <signal.h>

enum { PIECES = 1000 };

struct counts {
    int done[PIECES]; /* atomic */
    int started;      /* atomic */
    pthread_t caller;
    int signals_open; /* atomic: workers that would take SIGINT */
    size_t fail_from; /* pieces from here on fail */
};

static int count(void *context, size_t piece, struct cairn_error *err)
{
    struct counts *c = context;
    sigset_t now;
    __atomic_add_fetch(&c->started, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&c->done[piece], 1, __ATOMIC_RELAXED);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    if (!pthread_equal(pthread_self(), c->caller) && !sigismember(&now, SIGINT))
        __atomic_add_fetch(&c->signals_open, 1, __ATOMIC_RELAXED);
    if (piece >= c->fail_from)
        return cairn_fail(err, CAIRN_EIO, "piece %zu", piece);
    return 0;
}

static const int threads[] = { 0, 1, 2, 7, 64, 100000 };

static void each_piece_once(void)
{
    for (size_t t = 0; t < ARRAY_LEN(threads); t++) {
        struct counts c = { .caller = pthread_self(), .fail_from = PIECES };
        struct cairn_error err = { 0 };
        CHECK(parallel_for(PIECES, threads[t], count, &c, &err) == 0);
        for (size_t i = 0; i < PIECES; i++)
            CHECK_INT(c.done[i], 1);
        CHECK_INT(c.signals_open, 0);
        CHECK_STR(err.msg, "");
    }
}

static void few_pieces(void)
{
    for (size_t n = 0; n < 4; n++) {
        struct counts c = { .caller = pthread_self(), .fail_from = PIECES };
        struct cairn_error err = { 0 };
        CHECK(parallel_for(n, 64, count, &c, &err) == 0);
        CHECK_INT(c.started, n);
    }
}

/* Pieces are handed out in order, so the first that fails is among those that ran, whatever the threads do. */
static void the_lowest_failure_is_told(void)
{
    for (size_t t = 0; t < ARRAY_LEN(threads); t++) {
        struct counts c = { .caller = pthread_self(), .fail_from = 5 };
        struct cairn_error err = { 0 };
        CHECK(parallel_for(PIECES, threads[t], count, &c, &err) == -1);
        CHECK_INT(err.code, CAIRN_EIO);
        CHECK_STR(err.msg, "piece 5");
    }
}

static void a_failure_stops_the_rest(void)
{
    struct counts c = { .caller = pthread_self(), .fail_from = 3 };
    struct cairn_error err = { 0 };
    CHECK(parallel_for(PIECES, 1, count, &c, &err) == -1);
    CHECK_INT(c.started, 4);
    CHECK_INT(c.done[4], 0);
}

static void the_callers_signals_stay_open(void)
{
    struct counts c = { .caller = pthread_self(), .fail_from = PIECES };
    struct cairn_error err = { 0 };
    sigset_t now;
    CHECK(parallel_for(PIECES, 4, count, &c, &err) == 0);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    CHECK(!sigismember(&now, SIGINT));
}

static void there_is_a_cpu(void)
{
    CHECK(parallel_threads() >= 1);
}

int main(void)
{
    RUN(each_piece_once);
    RUN(few_pieces);
    RUN(the_lowest_failure_is_told);
    RUN(a_failure_stops_the_rest);
    RUN(the_callers_signals_stay_open);
    RUN(there_is_a_cpu);
    return check_done();
}
