/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention_cpu.h"

#include "gpu/backend.h"
#include "gpu/cpu_rows.h"
#include "base/int.h"

CPU_ROWS(attention_cpu, cpus);

/* Floats packed at a time, if one head of queries or keys is not larger. */
enum { PACKED_MOST = 4 << 20 };

/* How the work is split: as many heads at a time as fit. */
struct parts {
    size_t heads, streaming,
        making;            /* of keys, in all samples; for one of them: heads that stream, and others */
    size_t tokens, panels; /* that stream; of the others */
    size_t pitch, shares, most;
    size_t packed, sums; /* floats */
};

static struct parts parts_of(const struct attention_cpu *cpu, const struct attention_backward_args *a,
                             k_i64 samples, bool keys_stream, size_t n_streamed)
{
    size_t sharing = (size_t)(a->heads / a->kv_heads);
    struct parts p = {
        .heads = (size_t)(samples * a->kv_heads),
        .streaming = keys_stream ? 1 : sharing,
        .making = keys_stream ? sharing : 1,
        .tokens = (size_t)(keys_stream ? a->keys : a->queries),
        .panels = div_up((size_t)(keys_stream ? a->queries : a->keys), cpu->columns),
    };
    p.pitch = div_up(p.tokens, cpu->rows) * cpu->rows * div_up((size_t)a->size, cpu->rows) * cpu->rows;
    size_t one = p.pitch * n_streamed, fit = one && one < PACKED_MOST ? PACKED_MOST / one : 1;
    p.shares = at_most(fit, p.streaming);
    p.most = at_most(fit / p.shares, p.heads);
    p.packed = p.most * p.shares * one;
    p.sums = p.shares < p.streaming ? p.panels * 2 * ATTENTION_SIZE * cpu->columns : 0;
    return p;
}

enum { FORWARD_STREAMS = 2, DQ_STREAMS = 3, DKV_STREAMS = 4 };

size_t attention_cpu_scratch(const struct gpu *g, enum gpu_storage storage, k_i64 samples,
                             const struct attention_backward_args *a, bool back)
{
    static const struct {
        bool back, keys_stream;
        size_t streams;
    } ways[] = { { false, true, FORWARD_STREAMS }, { true, true, DQ_STREAMS }, { true, false, DKV_STREAMS } };
    const struct attention_cpu *cpu = cpus[storage][gpu_host_variant(g)];
    size_t most = 0;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct parts p = parts_of(cpu, a, samples, ways[i].keys_stream, ways[i].streams);
        if ((back || !ways[i].back) && p.packed + p.sums > most)
            most = p.packed + p.sums;
    }
    return most;
}

static int run(struct gpu *g, const struct attention_cpu *cpu, struct attention_job *j, k_i64 samples,
               void (*make)(void *job, size_t piece), struct cairn_error *err)
{
    struct parts p = parts_of(cpu, j->a, samples, j->keys_stream, j->n_streamed);
    if (gpu_host_scratch(g, p.packed + p.sums, &j->packed, err))
        return -1;
    j->pitch = p.pitch;
    j->sums = p.sums ? j->packed + p.packed : NULL;
    for (j->first = 0; j->first < p.heads; j->first += j->n)
        for (j->share = 0; j->share < p.streaming; j->share += j->n_shares) {
            j->n = at_most(p.heads - j->first, p.most);
            j->n_shares = at_most(p.streaming - j->share, p.shares);
            gpu_host_run(g, j->n * j->n_shares * div_up(p.tokens, ATTENTION_CPU_BLOCK), cpu->pack, j);
            gpu_host_run(g, j->n * p.making * p.panels, make, j);
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
        .n_streamed = FORWARD_STREAMS,
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
        .n_streamed = DQ_STREAMS,
        .keys_stream = true,
    };
    struct attention_job dkv = {
        .a = a,
        .streamed = { { a->q, a->q_by, false },
                      { a->d_o, a->d_o_by, false },
                      { a->q, a->q_by, true },
                      { a->d_o, a->d_o_by, true } },
        .n_streamed = DKV_STREAMS,
    };
    return run(g, cpu, &dq, samples, cpu->dq, err) || run(g, cpu, &dkv, samples, cpu->dkv, err) ? -1 : 0;
}
