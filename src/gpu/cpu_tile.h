/* SPDX-License-Identifier: Apache-2.0
 * Packed panels and a tile of products in registers, for one K_STORAGE and one set of instructions.  The
 * whole body stands here, to be compiled into each file that multiplies.
 *
 * A panel holds PANEL_ROWS rows of the left matrix or PANEL_COLUMNS columns of the right one, as f32 with k
 * running slowest, zeros past the end; the format and the transpose end with the packing. */
#ifndef CAIRN_GPU_CPU_TILE_H
#define CAIRN_GPU_CPU_TILE_H

#include "gpu/kernels/types.h"
#include "gpu/kernels/prelude.k"
#include "gpu/kernels/library.k"
#include <stdbool.h>
#include <stddef.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* A tile of PANEL_ROWS × VECTORS vectors fills the registers, but for those of b and one of a. */
#if defined(__AVX512F__)
typedef __m512 vec;
#define vec_load(p) _mm512_loadu_ps(p)
#define vec_save(p, v) _mm512_storeu_ps(p, v)
#define vec_spread(x) _mm512_set1_ps(x)
#define vec_fma(x, y, z) _mm512_fmadd_ps(x, y, z)
#define vec_add(x, y) _mm512_add_ps(x, y)
enum { LANES = 16, VECTORS = 3, PANEL_ROWS = 8 };
#elif defined(__AVX2__)
typedef __m256 vec;
#define vec_load(p) _mm256_loadu_ps(p)
#define vec_save(p, v) _mm256_storeu_ps(p, v)
#define vec_spread(x) _mm256_set1_ps(x)
#define vec_fma(x, y, z) _mm256_fmadd_ps(x, y, z)
#define vec_add(x, y) _mm256_add_ps(x, y)
enum { LANES = 8, VECTORS = 3, PANEL_ROWS = 4 };
#else
/* Not fused: a CPU this plain has no such instruction, and its results differ in the last bit. */
typedef float vec __attribute__((vector_size(16)));
typedef float loose_vec __attribute__((vector_size(16), aligned(4), may_alias));
#define vec_load(p) ((vec) * (const loose_vec *)(p))
#define vec_save(p, v) (*(loose_vec *)(p) = (v))
#define vec_spread(x) ((vec){ x, x, x, x })
#define vec_fma(x, y, z) ((x) * (y) + (z))
#define vec_add(x, y) ((x) + (y))
enum { LANES = 4, VECTORS = 2, PANEL_ROWS = 4 };
#endif
enum { PANEL_COLUMNS = LANES * VECTORS };
#define UNROLL _Pragma("GCC unroll 16")

/* sums (+)= a's panel times the first `vectors` vectors of b's over n steps along k. */
K_FN void multiply_some(int vectors, size_t n, const float *a, const float *b, float *sums, size_t stride,
                        bool add)
{
    vec sum[PANEL_ROWS][VECTORS];
    UNROLL for (int i = 0; i < PANEL_ROWS; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
        vec_spread(0.0f);
    for (size_t k = 0; k < n; k++, a += PANEL_ROWS, b += PANEL_COLUMNS) {
        vec y[VECTORS];
        UNROLL for (int j = 0; j < vectors; j++) y[j] = vec_load(b + j * LANES);
        UNROLL for (int i = 0; i < PANEL_ROWS; i++)
        {
            vec x = vec_spread(a[i]);
            UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = vec_fma(x, y[j], sum[i][j]);
        }
    }
    UNROLL for (int i = 0; i < PANEL_ROWS; i++) UNROLL for (int j = 0; j < vectors; j++)
    {
        float *p = sums + (size_t)i * stride + j * LANES;
        vec_save(p, add ? vec_add(vec_load(p), sum[i][j]) : sum[i][j]);
    }
}

/* The same for the first `columns` of the panel, at least. */
static inline void multiply(size_t columns, size_t n, const float *a, const float *b, float *sums,
                            size_t stride, bool add)
{
    if (columns > (VECTORS - 1) * LANES)
        multiply_some(VECTORS, n, a, b, sums, stride, add);
    else if (columns > LANES)
        multiply_some(2, n, a, b, sums, stride, add);
    else
        multiply_some(1, n, a, b, sums, stride, add);
}

typedef float four __attribute__((vector_size(16)));
typedef int four_index __attribute__((vector_size(16)));
typedef float loose_four __attribute__((vector_size(16), aligned(4), may_alias));
#ifdef __clang__
#define four_mix(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define four_mix(x, y, a, b, c, d) __builtin_shuffle(x, y, (four_index){ a, b, c, d })
#endif

/* Four rows of four become four columns. */
static inline void turn(const float *src, size_t stride, float *dst, size_t width)
{
    four r0 = *(const loose_four *)src, r1 = *(const loose_four *)(src + stride);
    four r2 = *(const loose_four *)(src + 2 * stride), r3 = *(const loose_four *)(src + 3 * stride);
    four a = four_mix(r0, r1, 0, 4, 1, 5), b = four_mix(r2, r3, 0, 4, 1, 5);
    four c = four_mix(r0, r1, 2, 6, 3, 7), d = four_mix(r2, r3, 2, 6, 3, 7);
    *(loose_four *)dst = four_mix(a, b, 0, 1, 4, 5);
    *(loose_four *)(dst + width) = four_mix(a, b, 2, 3, 6, 7);
    *(loose_four *)(dst + 2 * width) = four_mix(c, d, 0, 1, 4, 5);
    *(loose_four *)(dst + 3 * width) = four_mix(c, d, 2, 3, 6, 7);
}

/* Panels, one after the other, whose numbers are neighbours in memory along the width.  A few steps of k at a
 * time: what is read together and what is written together lie in few pages. */
static inline void pack_wide(const k_store *src, size_t stride, size_t depth, size_t n, size_t width,
                             float *panels)
{
    enum { STEPS = 16 };
    for (size_t first = 0; first < depth; first += STEPS) {
        size_t end = depth - first < STEPS ? depth : first + STEPS;
        for (size_t i = 0; i < n; i += width)
            for (size_t k = first; k < end; k++) {
                float *to = panels + i * depth + k * width;
                if (n - i >= width)
                    for (size_t x = 0; x < width; x++)
                        to[x] = k_widen(src[k * stride + i + x]);
                else
                    for (size_t x = 0; x < width; x++)
                        to[x] = x < n - i ? k_widen(src[k * stride + i + x]) : 0.0f;
            }
    }
}

/* Four rows of `n` as f32, every *stride numbers: in `widened` where they are not. */
static inline const float *widen_rows(const k_store *src, size_t n, size_t *stride, float *widened)
{
#if K_STORAGE == 0
    (void)n, (void)stride, (void)widened;
    return src;
#else
    for (size_t r = 0; r < 4; r++)
        for (size_t i = 0; i < n; i++)
            widened[r * n + i] = k_widen(src[r * *stride + i]);
    *stride = n;
    return widened;
#endif
}

/* Along k they are.  Rows are read a cache line at a time: their distance is often a multiple of 4096, and
 * few such lines stay in the cache together. */
static inline void pack_deep(const k_store *src, size_t stride, size_t depth, size_t n, size_t width,
                             float *panel)
{
    enum { LINE = 16 };
    size_t whole = n / 4 * 4, steps = depth / LINE * LINE;
    for (size_t k = 0; k < steps; k += LINE)
        for (size_t i = 0; i < whole; i += 4) {
            float widened[4 * LINE];
            size_t by = stride;
            const float *rows = widen_rows(src + i * stride + k, LINE, &by, widened);
            for (size_t l = 0; l < LINE; l += 4)
                turn(rows + l, by, panel + (k + l) * width + i, width);
        }
    for (size_t k = 0; k < depth; k++)
        for (size_t i = k < steps ? whole : 0; i < width; i++)
            panel[k * width + i] = i < n ? k_widen(src[i * stride + k]) : 0.0f;
}

#endif
