/* SPDX-License-Identifier: Apache-2.0
 * c = epilogue(alpha * a b + bias) + residual + beta * c, matrices in rows, sums in f32.
 *
 * a is m × k and b is k × n; a transposed one lies in memory as k × m or n × k.  A stride is the distance from a
 * row to the next as it lies in memory, a batch stride the distance from a matrix to the next.  Group (x, 0, z)
 * makes tile x of matrix z: launch with gemm_tiles(m, n) × 1 × matrices.
 *
 * Every kernel for matrices takes this struct, so that one can stand in for another. */
#ifndef CAIRN_GPU_KERNELS_GEMM_H
#define CAIRN_GPU_KERNELS_GEMM_H

#include "gpu/kernels/types.h"

struct gemm_args {
    struct k_fault *fault;
    void *c;      /* out; f32 where c_f32 */
    void *before; /* out, laid out as c: what GELU was given, for its backward; may be NULL */
    const void *a, *b;
    const void *residual; /* laid out as c; may be NULL */
    const float *bias;    /* for each column, or for each row where bias_rows; may be NULL */
    k_i64 m, n, k;
    k_i64 a_stride, b_stride, c_stride;
    k_i64 a_batch, b_batch, c_batch; /* 0 for one that all share */
    float alpha, beta;               /* beta 0: c is not read */
    k_u32 a_transposed, b_transposed;
    k_u32 c_f32, bias_rows, gelu;
};

enum { GEMM_TILE = 128 };
#define gemm_tiles(m, n) ((unsigned)(((m) + GEMM_TILE - 1) / GEMM_TILE * (((n) + GEMM_TILE - 1) / GEMM_TILE)))

#endif
