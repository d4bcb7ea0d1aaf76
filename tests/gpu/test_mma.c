/* SPDX-License-Identifier: Apache-2.0
 * Fragments of matrix cores: the macros of mma.k against the layouts that the vendors publish, and the kernel for
 * matrices in each of them.  A wrong macro used by kernel and emulation alike would pass the second test alone.
 *
 * Compiled for each K_MMA_LAYOUT.  Sources: AMD's matrix instruction calculator
 * (https://github.com/ROCm/amd_matrix_instruction_calculator, v_wmma_f32_16x16x16_bf16 for RDNA3 and RDNA4) and the
 * PTX manual's figures of mma.m16n8k16. */
#include "check.h"

#include "gpu/kernels/types.h"
#include "gpu/kernels/prelude.k"
#include "gpu/kernels/library.k"
#include "gpu/kernels/mma.k"
#include "gpu/kernels/gemm.h"
#include "gpu/kernels/gemm.k"
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

int main(void)
{
    RUN(sums_are_where_the_vendor_has_them);
    RUN(fragments_are_where_the_vendor_has_them);
    RUN(every_number_is_in_a_fragment);
    RUN(matrices_are_multiplied);
    return check_done();
}
