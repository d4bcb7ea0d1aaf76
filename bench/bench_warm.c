/* SPDX-License-Identifier: Apache-2.0
 * How long a program that was run before waits for its kernels: every kernel there is for bf16, which is more than any
 * training step takes, from the cache on disk, beside the first time, when each is compiled.
 *
 *     bench_warm [DEVICE [ROUNDS]]
 *
 * Prints CSV: the case, how many kernels, its best time in ms, the peer's time, and its share of ours. */
#include "base/cleanup.h"
#include "bench.h"
#include "gpu/backend.h"
#include "gpu/gpu.h"
#include "gpu/kernel_rows.h"

/* In ms; below 0: it failed, and said why. */
static double open_and_load(const char *device, int *kernels, double *open_ms)
{
    struct cairn_error err = { 0 };
    struct gpu *g;
    double begin = bench_now();
    if (gpu_open(device, &g, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return -1;
    }
    double opened = bench_now();
    *open_ms = (opened - begin) * 1e3;
    *kernels = 0;
    bool bad = false;
    for (size_t i = 0; i < n_kernel_rows && !bad; i++) {
        const struct gpu_kernel *k;
        if (!kernel_is_for(&kernel_rows[i], g, GPU_BF16))
            continue;
        bad = gpu_kernel(g, kernel_rows[i].name, GPU_BF16, &k, &err);
        ++*kernels;
    }
    double ms = (bench_now() - opened) * 1e3;
    if (bad)
        fprintf(stderr, "%s\n", err.msg);
    gpu_close(g);
    return bad ? -1 : ms;
}

static void remove_cache(const char *folder)
{
    char command[300];
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    if (system(command))
        fprintf(stderr, "%s stays behind\n", folder);
}

int main(int argc, char **argv)
{
    const char *device = argc > 1 ? argv[1] : "auto";
    int rounds = argc > 2 ? atoi(argv[2]) : 10, kernels = 0;
    char folder[] = "/tmp/cairn-bench-XXXXXX";
    double open_ms, best_open = 1e9, best = 1e9;
    if (!mkdtemp(folder))
        return 1;
    setenv("XDG_CACHE_HOME", folder, 1);
    double first = open_and_load(device, &kernels, &open_ms), ms = first;
    for (int i = 0; i < rounds && ms >= 0; i++) {
        ms = open_and_load(device, &kernels, &open_ms);
        best = ms < best ? ms : best;
        best_open = open_ms < best_open ? open_ms : best_open;
    }
    remove_cache(folder);
    if (ms < 0)
        return 1;
    puts("machine,commit,case,kernels,ms,peer,peer_ms,share");
    printf("%s,%s,kernels from the cache,%d,%.2f,compiled,%.0f,%.1f\n", bench_machine(), bench_commit(),
           kernels, best, first, first / best);
    printf("%s,%s,open the device again,0,%.2f,-,-,-\n", bench_machine(), bench_commit(), best_open);
    return 0;
}
