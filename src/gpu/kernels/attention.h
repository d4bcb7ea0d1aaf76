/* SPDX-License-Identifier: Apache-2.0
 * Attention without a matrix of scores in memory: o = softmax(scale q kᵀ) v for each sample and head.
 *
 * Heads of q share heads of k and v in turn: head h uses head h / (heads / kv_heads).  With `causal`, query i sees
 * the keys up to i + causal_shift; a query that sees none gets zeros.  The numbers of a head are neighbours in
 * memory; from sample to sample, token to token and head to head the strides lead.  Head sizes go to
 * ATTENTION_SIZE.
 *
 * Where there is a `bias`, bias[head][bias_span + d] is added to the scaled score of each query and key, d being the
 * key's position minus the query's, at most bias_span either way.  Backward knows none.
 *
 * Forward leaves the logarithm of each row's sum of exponentials in lse; backward makes the scores anew from it.
 * Groups: (tiles of rows, heads, samples), the rows being queries; keys and kv_heads for attention_dkv.
 *
 * By matrix cores (attention_mma.k): the same for 16-bit tensors and a scale above 0, with weights and slopes of the
 * scores rounded to 16 bits; NAME_64 for heads of up to 64 numbers, NAME_128 for the others.  The same for Hopper's
 * matrix cores (attention_mma.sm_90a.k), for heads of exactly 64 or 128 numbers, with tiles of as many rows; rows begin
 * at multiples of 16 bytes. */
#ifndef CAIRN_GPU_KERNELS_ATTENTION_H
#define CAIRN_GPU_KERNELS_ATTENTION_H

#include "gpu/kernels/types.h"

enum {
    ATTENTION_SIZE = 128,
    ATTENTION_ROWS = 32 /* of a tile */,
    ATTENTION_MMA_ROWS = 64 /* of those by matrix cores */
};

struct attention_stride {
    k_i64 sample, token, head;
};

struct attention_args {
    struct k_fault *fault;
    void *o;    /* out */
    float *lse; /* out, [sample][head][query] */
    const void *q, *k, *v;
    struct attention_stride o_by, q_by, k_by, v_by;
    k_i64 heads, kv_heads, queries, keys, size;
    k_i64 causal_shift;
    k_u32 causal;
    float scale;
    const float *bias; /* heads × (2 bias_span + 1); may be NULL */
    k_i64 bias_span;
};

/* attention_delta writes delta: the sum of o * d_o over a head's numbers for each row, all that the others need of o.
 * attention_dq writes dq; attention_dkv writes dk and dv. */
struct attention_backward_args {
    struct k_fault *fault;
    void *dq, *dk, *dv; /* out */
    float *delta;       /* as lse */
    const void *q, *k, *v, *o, *d_o;
    const float *lse;
    struct attention_stride dq_by, dk_by, dv_by, q_by, k_by, v_by, o_by, d_o_by;
    k_i64 heads, kv_heads, queries, keys, size;
    k_i64 causal_shift;
    k_u32 causal;
    float scale;
};

#endif
