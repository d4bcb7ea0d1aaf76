/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cpu_threads.h"

#include "check.h"
#include <unistd.h>

enum { PIECES = 1000, ROUNDS = 2000 };

static void count_piece(void *context, size_t piece)
{
    unsigned *counts = context;
    __atomic_fetch_add(&counts[piece], 1, __ATOMIC_RELAXED);
}

static void each_piece_is_done_once(void)
{
    const int sizes[] = { 1, 2, 3, 8 };
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        static unsigned counts[PIECES];
        memset(counts, 0, sizeof(counts));
        struct cpu_threads *c = cpu_threads_new(sizes[s]);
        REQUIRE(c);
        CHECK(cpu_threads_size(c) >= 1 && cpu_threads_size(c) <= sizes[s]);
        cpu_threads_run(c, PIECES, count_piece, counts);
        cpu_threads_free(c);
        for (int i = 0; i < PIECES; i++)
            if (counts[i] != 1) {
                CHECK_FAIL_("%d threads: piece %d was done %u times", sizes[s], i, counts[i]);
                break;
            }
    }
}

/* Plain memory: what one call writes the next may read, on whatever thread. */
struct chain {
    uint64_t cells[8];
};

static void add_one(void *context, size_t piece)
{
    struct chain *c = context;
    c->cells[piece]++;
}

static void small_calls_in_a_row(void)
{
    struct chain chain = { { 0 } };
    struct cpu_threads *c = cpu_threads_new(4);
    REQUIRE(c);
    for (int i = 0; i < ROUNDS; i++)
        cpu_threads_run(c, 1 + (size_t)i % 8, add_one, &chain);
    cpu_threads_free(c);
    uint64_t sum = 0;
    for (int i = 0; i < 8; i++)
        sum += chain.cells[i];
    CHECK_INT(sum, (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8) * (ROUNDS / 8));
}

/* Threads that went to sleep come back. */
static void a_rested_crew_works(void)
{
    static unsigned counts[PIECES];
    memset(counts, 0, sizeof(counts));
    struct cpu_threads *c = cpu_threads_new(3);
    REQUIRE(c);
    for (int i = 0; i < 5; i++) {
        usleep(2000);
        cpu_threads_run(c, PIECES, count_piece, counts);
    }
    cpu_threads_free(c);
    for (int i = 0; i < PIECES; i++)
        if (counts[i] != 5) {
            CHECK_FAIL_("piece %d was done %u times", i, counts[i]);
            break;
        }
}

static void nothing_to_do_is_fine(void)
{
    struct cpu_threads *c = cpu_threads_new(2);
    REQUIRE(c);
    cpu_threads_run(c, 0, add_one, NULL);
    cpu_threads_free(c);
    cpu_threads_free(NULL);
}

int main(void)
{
    RUN(each_piece_is_done_once);
    RUN(small_calls_in_a_row);
    RUN(a_rested_crew_works);
    RUN(nothing_to_do_is_fine);
    return check_done();
}
