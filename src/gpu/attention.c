/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention.h"

#include "base/int.h"
#include "gpu/attention_cpu.h"
#include "gpu/backend.h"

enum way { CPU, FMA, MMA_64, MMA_128, WGMMA_64, WGMMA_128 };
static const struct {
    k_i64 rows; /* of a tile */
    const char *forward, *dq, *dkv;
} ways[] = {
    [FMA] = { ATTENTION_ROWS, "attention", "attention_dq", "attention_dkv" },
    [MMA_64] = { ATTENTION_MMA_ROWS, "attention_mma_64", "attention_dq_mma_64", "attention_dkv_mma_64" },
    [MMA_128] = { ATTENTION_MMA_ROWS, "attention_mma_128", "attention_dq_mma_128", "attention_dkv_mma_128" },
    [WGMMA_64] = { 64, "attention_wgmma_64", "attention_dq_wgmma_64", "attention_dkv_wgmma_64" },
    [WGMMA_128] = { 128, "attention_wgmma_128", "attention_dq_wgmma_128", "attention_dkv_wgmma_128" },
};

/* A tensor in memory. */
struct side {
    const void *at;
    const struct attention_stride *by;
};

static bool is_aligned(const struct side *sides, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((uintptr_t)sides[i].at % 16 || sides[i].by->sample % 8 || sides[i].by->token % 8 ||
            sides[i].by->head % 8)
            return false;
    return true;
}

/* Whether there is a kernel for this chip alone that takes such tensors.  Where the compiler cannot make it, the
 * one for all chips does its work. */
static bool has_chip_kernel(struct gpu *g, enum way way, enum gpu_storage storage, const struct side *sides,
                            size_t n)
{
    const struct gpu_kernel *k;
    struct cairn_error why = { 0 };
    if (!kernel_is_for(kernel_find(ways[way].forward), g, storage) || !is_aligned(sides, n))
        return false;
    g->chip_kernels_fail = gpu_kernel(g, ways[way].forward, storage, &k, &why);
    return !g->chip_kernels_fail;
}

struct request {
    enum gpu_storage storage;
    k_i64 size;
    float scale;
    bool bias;
    const struct side *sides;
    size_t n;
};

/* The CPU has all kernels too, for tests and debugging. */
static enum way choose(struct gpu *g, const struct request *r)
{
    if (gpu_info(g)->api == GPU_API_HOST)
        return g->fault ? FMA : CPU;
    if (r->storage == GPU_F32 || !gpu_has_mma(g) || !(r->scale > 0))
        return FMA;
    if (r->size == 64 && !r->bias && has_chip_kernel(g, WGMMA_64, r->storage, r->sides, r->n))
        return WGMMA_64;
    if (r->size == 128 && !r->bias && has_chip_kernel(g, WGMMA_128, r->storage, r->sides, r->n))
        return WGMMA_128;
    return r->size <= 64 ? MMA_64 : MMA_128;
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
    const struct side sides[] = {
        { a->o, &a->o_by }, { a->q, &a->q_by }, { a->k, &a->k_by }, { a->v, &a->v_by }
    };
    const struct request r = { storage, a->size, a->scale, a->bias != NULL, sides, ARRAY_LEN(sides) };
    struct work w = { g, s, storage, samples, a, sizeof(*a) };
    enum way way = choose(g, &r);
    if (way == CPU)
        return attention_cpu_forward(g, storage, samples, a, err);
    return launch(&w, ways[way].forward, a->queries, ways[way].rows, a->heads, err);
}

int attention_backward(struct gpu *g, struct gpu_stream *s, enum gpu_storage storage, k_i64 samples,
                       const struct attention_backward_args *a, struct cairn_error *err)
{
    const struct side sides[] = { { a->dq, &a->dq_by }, { a->dk, &a->dk_by },  { a->dv, &a->dv_by },
                                  { a->q, &a->q_by },   { a->k, &a->k_by },    { a->v, &a->v_by },
                                  { a->o, &a->o_by },   { a->d_o, &a->d_o_by } };
    const struct request r = { storage, a->size, a->scale, false, sides, ARRAY_LEN(sides) };
    struct work w = { g, s, storage, samples, a, sizeof(*a) };
    enum way way = choose(g, &r);
    if (launch(&w, "attention_delta", a->queries, ATTENTION_ROWS, a->heads, err))
        return -1;
    if (way == CPU)
        return attention_cpu_backward(g, storage, samples, a, err);
    return launch(&w, ways[way].dq, a->queries, ways[way].rows, a->heads, err) ||
                   launch(&w, ways[way].dkv, a->keys, ways[way].rows, a->kv_heads, err)
               ? -1
               : 0;
}
