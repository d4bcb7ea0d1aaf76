/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention.h"

#include "base/int.h"
#include "gpu/attention_cpu.h"
#include "gpu/backend.h"

enum way { CPU, FMA, MMA_64, MMA_128 };
static const k_i64 rows_of[] = {
    [FMA] = ATTENTION_ROWS, [MMA_64] = ATTENTION_MMA_ROWS, [MMA_128] = ATTENTION_MMA_ROWS
};

/* The CPU has all kernels too, for tests and debugging. */
static enum way choose(const struct gpu *g, enum gpu_storage storage, k_i64 size, float scale)
{
    if (gpu_info(g)->api == GPU_API_HOST)
        return g->fault ? FMA : CPU;
    bool mma = storage != GPU_F32 && gpu_has_mma(g) && scale > 0;
    return !mma ? FMA : size <= 64 ? MMA_64 : MMA_128;
}

struct work {
    struct gpu *g;
    struct gpu_stream *stream;
    enum gpu_storage storage;
    k_i64 samples;
    const void *args;
    size_t args_size;
};

static int launch(const struct work *w, const char *name, k_i64 rows, k_i64 tile, k_i64 heads,
                  struct cairn_error *err)
{
    struct gpu_grid grid = { (unsigned)(div_up(rows, tile)), (unsigned)heads, (unsigned)w->samples };
    const struct gpu_kernel *k;
    return gpu_kernel(w->g, name, w->storage, &k, err) ||
                   gpu_launch(w->g, w->stream, k, grid, w->args, w->args_size, err)
               ? -1
               : 0;
}

int attention_forward(struct gpu *g, struct gpu_stream *s, enum gpu_storage storage, k_i64 samples,
                      const struct attention_args *a, struct cairn_error *err)
{
    static const char *const names[] = {
        [FMA] = "attention", [MMA_64] = "attention_mma_64", [MMA_128] = "attention_mma_128"
    };
    struct work w = { g, s, storage, samples, a, sizeof(*a) };
    enum way way = choose(g, storage, a->size, a->scale);
    if (way == CPU)
        return attention_cpu_forward(g, storage, samples, a, err);
    return launch(&w, names[way], a->queries, rows_of[way], a->heads, err);
}

int attention_backward(struct gpu *g, struct gpu_stream *s, enum gpu_storage storage, k_i64 samples,
                       const struct attention_backward_args *a, struct cairn_error *err)
{
    static const char *const dq[] = {
        [FMA] = "attention_dq", [MMA_64] = "attention_dq_mma_64", [MMA_128] = "attention_dq_mma_128"
    };
    static const char *const dkv[] = {
        [FMA] = "attention_dkv", [MMA_64] = "attention_dkv_mma_64", [MMA_128] = "attention_dkv_mma_128"
    };
    struct work w = { g, s, storage, samples, a, sizeof(*a) };
    enum way way = choose(g, storage, a->size, a->scale);
    if (launch(&w, "attention_delta", a->queries, ATTENTION_ROWS, a->heads, err))
        return -1;
    if (way == CPU)
        return attention_cpu_backward(g, storage, samples, a, err);
    return launch(&w, dq[way], a->queries, rows_of[way], a->heads, err) ||
                   launch(&w, dkv[way], a->keys, rows_of[way], a->kv_heads, err)
               ? -1
               : 0;
}
