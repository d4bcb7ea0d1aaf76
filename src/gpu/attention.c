/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention.h"

/* The CPU has kernels for matrix cores too, but only to test them. */
static bool takes_mma(const struct gpu *g, enum gpu_storage storage)
{
    return storage != GPU_F32 && gpu_has_mma(g) && gpu_info(g)->api != GPU_API_HOST;
}

static struct gpu_grid grid_of(k_i64 rows, k_i64 tile, k_i64 heads, k_i64 samples)
{
    return (struct gpu_grid){ (unsigned)((rows + tile - 1) / tile), (unsigned)heads, (unsigned)samples };
}

static int launch(struct gpu *g, struct gpu_stream *s, enum gpu_storage storage, const char *name,
                  struct gpu_grid grid, const void *args, size_t size, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    return gpu_kernel(g, name, storage, &k, err) || gpu_launch(g, s, k, grid, args, size, err) ? -1 : 0;
}

int attention_forward(struct gpu *g, struct gpu_stream *s, enum gpu_storage storage, k_i64 samples,
                      const struct attention_args *a, struct cairn_error *err)
{
    bool mma = takes_mma(g, storage);
    return launch(g, s, storage, mma ? "attention_mma" : "attention",
                  grid_of(a->queries, mma ? ATTENTION_MMA_ROWS : ATTENTION_ROWS, a->heads, samples), a,
                  sizeof(*a), err);
}

int attention_backward(struct gpu *g, struct gpu_stream *s, enum gpu_storage storage, k_i64 samples,
                       const struct attention_backward_args *a, struct cairn_error *err)
{
    struct gpu_grid queries = grid_of(a->queries, ATTENTION_ROWS, a->heads, samples);
    struct gpu_grid keys = grid_of(a->keys, ATTENTION_ROWS, a->kv_heads, samples);
    return launch(g, s, storage, "attention_delta", queries, a, sizeof(*a), err) ||
                   launch(g, s, storage, "attention_dq", queries, a, sizeof(*a), err) ||
                   launch(g, s, storage, "attention_dkv", keys, a, sizeof(*a), err)
               ? -1
               : 0;
}
