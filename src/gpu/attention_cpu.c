/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention_cpu.h"

#include "gpu/backend.h"
#include "gpu/cpu_rows.h"
#include "gpu/pieces.h"

CPU_ROWS(attention_cpu, cpus);

/* Numbers that are packed at a time, if a head of queries or keys has no more. */
enum { PACKED_MOST = 4 << 20 };

/* All heads of all samples, as many at a time as there is room for. */
static int run(struct gpu *g, const struct attention_cpu *cpu, struct attention_job *j, k_i64 samples,
               void (*make)(void *job, size_t piece), struct cairn_error *err)
{
    const struct attention_backward_args *a = j->a;
    size_t sharing = (size_t)(a->heads / a->kv_heads), heads = (size_t)(samples * a->kv_heads);
    size_t streaming = j->keys_stream ? 1 : sharing,
           making = j->keys_stream ? sharing : 1; /* for one head of keys */
    size_t tokens = (size_t)(j->keys_stream ? a->keys : a->queries);
    size_t panels = pieces_of((size_t)(j->keys_stream ? a->queries : a->keys), cpu->columns);
    j->pitch = pieces_of(tokens, cpu->rows) * cpu->rows * pieces_of((size_t)a->size, cpu->rows) * cpu->rows;
    size_t one = j->pitch * j->n_streamed, fit = one && one < PACKED_MOST ? PACKED_MOST / one : 1;
    size_t shares = at_most(fit, streaming), most = at_most(fit / shares, heads);
    size_t sums = shares < streaming ? panels * 2 * ATTENTION_SIZE * cpu->columns : 0;
    if (gpu_host_room(g, most * shares * one + sums, &j->room, err))
        return -1;
    j->sums = sums ? j->room + most * shares * one : NULL;
    for (j->first = 0; j->first < heads; j->first += j->n)
        for (j->share = 0; j->share < streaming; j->share += j->n_shares) {
            j->n = at_most(heads - j->first, most);
            j->n_shares = at_most(streaming - j->share, shares);
            gpu_host_run(g, j->n * j->n_shares * pieces_of(tokens, ATTENTION_CPU_BLOCK), cpu->pack, j);
            gpu_host_run(g, j->n * making * panels, make, j);
        }
    return 0;
}

int attention_cpu_forward(struct gpu *g, enum gpu_storage storage, k_i64 samples,
                          const struct attention_args *a, struct cairn_error *err)
{
    const struct attention_cpu *cpu = cpus[storage][gpu_host_variant(g)];
    struct attention_backward_args shared = {
        .q = a->q,
        .k = a->k,
        .v = a->v,
        .q_by = a->q_by,
        .k_by = a->k_by,
        .v_by = a->v_by,
        .heads = a->heads,
        .kv_heads = a->kv_heads,
        .queries = a->queries,
        .keys = a->keys,
        .size = a->size,
        .causal_shift = a->causal_shift,
        .causal = a->causal,
        .scale = a->scale,
    };
    struct attention_job j = {
        .a = &shared,
        .forward = a,
        .streamed = { { a->k, a->k_by, false }, { a->v, a->v_by, true } },
        .n_streamed = 2,
        .keys_stream = true,
    };
    return run(g, cpu, &j, samples, cpu->forward, err);
}

int attention_cpu_backward(struct gpu *g, enum gpu_storage storage, k_i64 samples,
                           const struct attention_backward_args *a, struct cairn_error *err)
{
    const struct attention_cpu *cpu = cpus[storage][gpu_host_variant(g)];
    struct attention_job dq = {
        .a = a,
        .streamed = { { a->k, a->k_by, false }, { a->v, a->v_by, false }, { a->k, a->k_by, true } },
        .n_streamed = 3,
        .keys_stream = true,
    };
    struct attention_job dkv = {
        .a = a,
        .streamed = { { a->q, a->q_by, false },
                      { a->d_o, a->d_o_by, false },
                      { a->q, a->q_by, true },
                      { a->d_o, a->d_o_by, true } },
        .n_streamed = 4,
    };
    return run(g, cpu, &dq, samples, cpu->dq, err) || run(g, cpu, &dkv, samples, cpu->dkv, err) ? -1 : 0;
}
