/* SPDX-License-Identifier: Apache-2.0
 * Fragments of matrix cores: the macros of mma.k against the layouts that the vendors publish, and the kernels for
 * matrices and attention in each of them.  A wrong macro used by kernel and emulation alike would pass the second test alone.
 *
 * Compiled for each K_MMA_LAYOUT.  Sources: AMD's matrix instruction calculator
 * (https://github.com/ROCm/amd_matrix_instruction_calculator, v_wmma_f32_16x16x16_bf16 for RDNA3 and RDNA4) and the
 * PTX manual's figures of mma.m16n8k16. */
#include "check.h"

#include "gpu/kernels/types.h"
#include "gpu/kernels/prelude.k"
#include "gpu/kernels/library.k"
#include "gpu/kernels/mma.k"
#include "gpu/kernels/debug.k"
#include "gpu/kernels/gemm.h"
#include "gpu/kernels/gemm.k"
#undef K_WG
#include "gpu/kernels/attention.h"
#include "gpu/kernels/attention.k"
#undef K_WG
#define K_SIZE 64
#include "gpu/kernels/attention_mma.k"
#undef K_WG
#undef K_SIZE
#define K_SIZE 128
#include "gpu/kernels/attention_mma.k"
#include <math.h>
#include <string.h>

/* Row of sum i in the lower and the upper 16 lanes; the column is the lane in its half. */
#if K_MMA_LAYOUT == 11
static const int sum_rows[8][2] = { { 0, 1 }, { 2, 3 },   { 4, 5 },   { 6, 7 },
                                    { 8, 9 }, { 10, 11 }, { 12, 13 }, { 14, 15 } };
#elif K_MMA_LAYOUT == 12
static const int sum_rows[8][2] = { { 0, 8 },  { 1, 9 },  { 2, 10 }, { 3, 11 },
                                    { 4, 12 }, { 5, 13 }, { 6, 14 }, { 7, 15 } };
#else
/* Of lane 4g + t: added to g for the row, to 2t for the column; the second half of the columns is a second
 * instruction. */
static const int sum_places[8][2] = { { 0, 0 }, { 0, 1 }, { 8, 0 }, { 8, 1 },
                                      { 0, 8 }, { 0, 9 }, { 8, 8 }, { 8, 9 } };
static const int a_places[4][2] = {
    { 0, 0 }, { 8, 0 }, { 0, 8 }, { 8, 8 }
}; /* row, k of the word's first number */
static const int b_places[4][2] = { { 0, 0 }, { 0, 8 }, { 8, 0 }, { 8, 8 } }; /* column, k */
#endif

static void sums_are_where_the_vendor_has_them(void)
{
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 8; i++) {
#if K_MMA_LAYOUT == 80
            int row = l / 4 + sum_places[i][0], column = l % 4 * 2 + sum_places[i][1];
#else
            int row = sum_rows[i][l / 16], column = l % 16;
#endif
            CHECK(K_C_ROW(l, i) == row && K_C_COLUMN(l, i) == column);
        }
}

static void fragments_are_where_the_vendor_has_them(void)
{
    for (int l = 0; l < 32; l++)
        for (int w = 0; w < K_FRAG; w++) {
#if K_MMA_LAYOUT == 80
            CHECK(K_A_ROW(l, w) == l / 4 + a_places[w][0] &&
                  2 * K_A_WORD(l, w) == l % 4 * 2 + a_places[w][1]);
            CHECK(K_B_COLUMN(l, w) == l / 4 + b_places[w][0] &&
                  2 * K_B_WORD(l, w) == l % 4 * 2 + b_places[w][1]);
#else
            /* gfx12 numbers k otherwise; what counts is that a and b agree and that a row is whole. */
            CHECK(K_A_ROW(l, w) == l % 16 && K_B_COLUMN(l, w) == l % 16);
            CHECK(K_A_WORD(l, w) == K_B_WORD(l, w));
#endif
        }
}

/* gfx11 has every row in both halves of the wave, the others have it once. */
static void every_number_is_in_a_fragment(void)
{
    int seen_a[16][8] = { { 0 } }, seen_b[16][8] = { { 0 } }, times = K_MMA_LAYOUT == 11 ? 2 : 1;
    for (int l = 0; l < 32; l++)
        for (int w = 0; w < K_FRAG; w++) {
            seen_a[K_A_ROW(l, w)][K_A_WORD(l, w)]++;
            seen_b[K_B_COLUMN(l, w)][K_B_WORD(l, w)]++;
        }
    for (int i = 0; i < 16; i++)
        for (int w = 0; w < 8; w++)
            CHECK(seen_a[i][w] == times && seen_b[i][w] == times);
}

static void matrices_are_multiplied(void)
{
    enum { M = 130, N = 140, K = 70 };
    static k_u16 a[M * K], b[N * K];
    static float c[M * N];
    for (int i = 0; i < M * K; i++)
        a[i] = k_float_to_bf16((float)(i * 7 % 31 - 15) / 8);
    for (int i = 0; i < N * K; i++)
        b[i] = k_float_to_bf16((float)(i * 5 % 29 - 14) / 16);
    struct gemm_args args = { .c = c,
                              .a = a,
                              .b = b,
                              .m = M,
                              .n = N,
                              .k = K,
                              .a_stride = K,
                              .b_stride = K,
                              .c_stride = N,
                              .alpha = 1,
                              .b_transposed = 1,
                              .c_f32 = 1 };
    for (int tile = 0; tile < (int)gemm_tiles(M, N); tile++)
        K_NAME(gemm_mma)(&args, (struct k_place){ tile, 0, 0 });
    double worst = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += (double)k_bf16_to_float(a[i * K + k]) * k_bf16_to_float(b[j * K + k]);
            worst = fmax(worst, fabs(sum - c[i * N + j]));
        }
    CHECK(worst < 1e-3);
}

/* Attention by multiply and add, which has tests of its own, beside attention by matrix cores: the same but for the
 * rounding of weights and slopes. */
enum { QUERIES = 70, KEYS = 90, HEADS = 2, MOST = KEYS * HEADS * 128 };
struct outcome {
    float lse[HEADS * QUERIES], delta[HEADS * QUERIES];
    k_u16 o[MOST], dq[MOST], dk[MOST], dv[MOST];
};
typedef void kernel(const void *args, struct k_place place);

static void every_group(kernel *k, const void *args, int rows, int tile, int heads)
{
    for (int head = 0; head < heads; head++)
        for (int x = 0; x < (rows + tile - 1) / tile; x++)
            k(args, (struct k_place){ x, head, 0 });
}

static void attend(struct outcome *out, int size, int causal, kernel *forward, kernel *dq, kernel *dkv,
                   int tile)
{
    static k_u16 q[MOST], k[MOST], v[MOST], d_o[MOST];
    for (int i = 0; i < MOST; i++) {
        q[i] = k_float_to_bf16((float)(i * 7 % 31 - 15) / 8);
        k[i] = k_float_to_bf16((float)(i * 5 % 29 - 14) / 16);
        v[i] = k_float_to_bf16((float)(i * 11 % 37 - 18) / 16);
        d_o[i] = k_float_to_bf16((float)(i * 13 % 41 - 20) / 16);
    }
    struct attention_stride by_q = { 0, HEADS * size, size }, by_k = { 0, size, size };
/* What both take. */
#define BOTH                                                                                          \
    .q = q, .k = k, .v = v, .lse = out->lse, .q_by = by_q, .k_by = by_k, .v_by = by_k, .o_by = by_q,  \
    .heads = HEADS, .kv_heads = 1, .queries = QUERIES, .keys = KEYS, .size = size, .causal_shift = 3, \
    .causal = (k_u32)causal, .scale = 0.125f
    struct attention_args there = { BOTH, .o = out->o };
    struct attention_backward_args back = { BOTH,          .dq = out->dq,       .dk = out->dk,
                                            .dv = out->dv, .delta = out->delta, .o = out->o,
                                            .d_o = d_o,    .dq_by = by_q,       .dk_by = by_k,
                                            .dv_by = by_k, .d_o_by = by_q };
    every_group(forward, &there, QUERIES, tile, HEADS);
    every_group(K_NAME(attention_delta), &back, QUERIES, ATTENTION_ROWS, HEADS);
    every_group(dq, &back, QUERIES, tile, HEADS);
    every_group(dkv, &back, KEYS, tile, 1);
}

/* The largest difference, relative to the largest number. */
static double apart(const k_u16 *x, const k_u16 *y, int n)
{
    double worst = 0, largest = 0;
    for (int i = 0; i < n; i++) {
        worst = fmax(worst, fabs(k_bf16_to_float(x[i]) - k_bf16_to_float(y[i])));
        largest = fmax(largest, fabs(k_bf16_to_float(y[i])));
    }
    return largest > 0 ? worst / largest : 1;
}

static void compare(int size, int causal, kernel *forward, kernel *dq, kernel *dkv)
{
    static struct outcome got, want;
    int nq = QUERIES * HEADS * size, nk = KEYS * size;
    attend(&want, size, causal, K_NAME(attention), K_NAME(attention_dq), K_NAME(attention_dkv),
           ATTENTION_ROWS);
    attend(&got, size, causal, forward, dq, dkv, ATTENTION_MMA_ROWS);
    for (int i = 0; i < HEADS * QUERIES; i++)
        CHECK(fabs(got.lse[i] - want.lse[i]) < 1e-5);
    CHECK(apart(got.o, want.o, nq) < 0.01);
    CHECK(apart(got.dq, want.dq, nq) < 0.02);
    CHECK(apart(got.dk, want.dk, nk) < 0.02);
    CHECK(apart(got.dv, want.dv, nk) < 0.02);
}

static void attention_is_the_same(void)
{
    for (int causal = 0; causal < 2; causal++) {
        compare(64, causal, K_NAME(attention_mma_64), K_NAME(attention_dq_mma_64),
                K_NAME(attention_dkv_mma_64));
        compare(50, causal, K_NAME(attention_mma_64), K_NAME(attention_dq_mma_64),
                K_NAME(attention_dkv_mma_64));
        compare(128, causal, K_NAME(attention_mma_128), K_NAME(attention_dq_mma_128),
                K_NAME(attention_dkv_mma_128));
    }
}

int main(void)
{
    RUN(sums_are_where_the_vendor_has_them);
    RUN(fragments_are_where_the_vendor_has_them);
    RUN(every_number_is_in_a_fragment);
    RUN(matrices_are_multiplied);
    RUN(attention_is_the_same);
    return check_done();
}
