/* SPDX-License-Identifier: Apache-2.0
 * The pool: what an allocation and a free take, and what is lost to holes.
 *
 *     bench_pool [DEVICE [ROUNDS]]
 *
 * The trace is that of a step of training whose length changes from step to step: activations of each layer are kept until
 * the way back, with short-lived pieces between them.  Prints CSV; bench/pool_torch.py runs the same with PyTorch. */
#include "base/cleanup.h"
#include "bench.h"
#include "gpu/gpu.h"
#include "gpu/pool.h"
#include <inttypes.h>

enum { LAYERS = 12, KEPT = 6, STEPS = 200 };

static void say(const char *what, double value, const char *unit)
{
    printf("%s,%s,%s,%.4g,%s\n", bench_machine(), bench_commit(), what, value, unit);
}

static void *get(struct pool *p, size_t n)
{
    static struct cairn_error err;
    void *at;
    if (pool_alloc(p, n, NULL, &at, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    return at;
}

/* The best of ten. */
static double pair_ns(struct pool *p, size_t n, long rounds)
{
    double best = 1e9;
    for (int k = 0; k < 10; k++) {
        double begin = bench_now();
        for (long i = 0; i < rounds; i++)
            pool_free(p, get(p, n), NULL);
        double ns = (bench_now() - begin) * 1e9 / (double)rounds;
        best = ns < best ? ns : best;
    }
    return best;
}

/* The size of the kth piece of a layer for so many tokens of 768 numbers. */
static size_t kept_bytes(int k, size_t tokens)
{
    static const size_t widths[KEPT] = { 768, 2304, 768, 768, 3072, 3072 };
    return tokens * widths[k] * 2;
}

static long step(struct pool *p, size_t tokens)
{
    void *kept[LAYERS][KEPT];
    for (int l = 0; l < LAYERS; l++)
        for (int k = 0; k < KEPT; k++) {
            kept[l][k] = get(p, kept_bytes(k, tokens));
            pool_free(p, get(p, tokens * 4), NULL);
        }
    for (int l = LAYERS; l-- > 0;)
        for (int k = KEPT; k-- > 0;) {
            void *grad = get(p, kept_bytes(k, tokens));
            pool_free(p, kept[l][k], NULL);
            pool_free(p, grad, NULL);
        }
    return 3 * LAYERS * KEPT;
}

/* Lengths as bench/pool_torch.py makes them. */
static size_t length(int i)
{
    return 1024 + (size_t)i * 2654435761u % 8 * 1024;
}

int main(int argc, char **argv)
{
    struct cairn_error err = { 0 };
    struct gpu *g;
    long rounds = argc > 2 ? atol(argv[2]) : 200000, pairs = 0;
    if (gpu_open(argc > 1 ? argv[1] : "auto", &g, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    struct pool *p = gpu_pool(g);
    puts("machine,commit,case,value,unit");
    say("alloc and free of 1 KiB", pair_ns(p, 1 << 10, rounds), "ns");
    say("alloc and free of 1 MiB", pair_ns(p, 1 << 20, rounds), "ns");
    say("alloc and free of 20 MiB", pair_ns(p, 20 << 20, rounds), "ns");
    double begin = bench_now();
    for (int i = 0; i < STEPS; i++) {
        pairs += step(p, length(i));
        pool_settle(p);
    }
    say("a pair in the trace of a step", (bench_now() - begin) * 1e9 / (double)pairs, "ns");
    struct pool_stats st;
    pool_stats_get(p, &st);
    say("fragmentation of the trace", 100 * (1 - (double)st.peak_bytes / (double)st.peak_reserved_bytes),
        "%");
    say("reserved at most", (double)st.peak_reserved_bytes / (1 << 20), "MiB");
    gpu_close(g);
    return 0;
}
