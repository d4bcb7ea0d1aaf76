/* SPDX-License-Identifier: Apache-2.0
 * Compiled once for each K_STORAGE and K_VARIANT. */
#include "gpu/gemm_cpu.h"
#include "gpu/kernels/prelude.k"
#include "gpu/kernels/library.k"

#include <string.h>
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

/* sums (+)= a's panel times b's panel over n steps along k. */
static void multiply(size_t n, const float *a, const float *b, float *sums, size_t stride, bool add)
{
    vec sum[PANEL_ROWS][VECTORS];
    UNROLL for (int i = 0; i < PANEL_ROWS; i++) UNROLL for (int j = 0; j < VECTORS; j++) sum[i][j] =
        vec_spread(0.0f);
    for (size_t k = 0; k < n; k++, a += PANEL_ROWS, b += PANEL_COLUMNS) {
        vec y[VECTORS];
        UNROLL for (int j = 0; j < VECTORS; j++) y[j] = vec_load(b + j * LANES);
        UNROLL for (int i = 0; i < PANEL_ROWS; i++)
        {
            vec x = vec_spread(a[i]);
            UNROLL for (int j = 0; j < VECTORS; j++) sum[i][j] = vec_fma(x, y[j], sum[i][j]);
        }
    }
    UNROLL for (int i = 0; i < PANEL_ROWS; i++) UNROLL for (int j = 0; j < VECTORS; j++)
    {
        float *p = sums + (size_t)i * stride + j * LANES;
        vec_save(p, add ? vec_add(vec_load(p), sum[i][j]) : sum[i][j]);
    }
}

/* ---- packing ---- */

/* Along the panel's width the numbers are neighbours in memory. */
static void pack_wide(const k_store *src, size_t stride, size_t depth, size_t n, size_t width, float *panel)
{
    for (size_t k = 0; k < depth; k++, src += stride, panel += width) {
        for (size_t i = 0; i < n; i++)
            panel[i] = k_widen(src[i]);
        for (size_t i = n; i < width; i++)
            panel[i] = 0.0f;
    }
}

typedef float four __attribute__((vector_size(16)));
typedef int four_index __attribute__((vector_size(16)));
typedef float loose_four __attribute__((vector_size(16), aligned(4), may_alias));
#ifdef __clang__
#define four_mix(x, y, a, b, c, d) __builtin_shufflevector(x, y, a, b, c, d)
#else
#define four_mix(x, y, a, b, c, d) __builtin_shuffle(x, y, (four_index){ a, b, c, d })
#endif

static four four_load(const k_store *p)
{
    float v[4];
    for (int i = 0; i < 4; i++)
        v[i] = k_widen(p[i]);
    return (four){ v[0], v[1], v[2], v[3] };
}

/* Four rows of four become four columns. */
static void turn(const k_store *src, size_t stride, float *dst, size_t width)
{
    four r0 = four_load(src), r1 = four_load(src + stride), r2 = four_load(src + 2 * stride),
         r3 = four_load(src + 3 * stride);
    four a = four_mix(r0, r1, 0, 4, 1, 5), b = four_mix(r2, r3, 0, 4, 1, 5);
    four c = four_mix(r0, r1, 2, 6, 3, 7), d = four_mix(r2, r3, 2, 6, 3, 7);
    *(loose_four *)dst = four_mix(a, b, 0, 1, 4, 5);
    *(loose_four *)(dst + width) = four_mix(a, b, 2, 3, 6, 7);
    *(loose_four *)(dst + 2 * width) = four_mix(c, d, 0, 1, 4, 5);
    *(loose_four *)(dst + 3 * width) = four_mix(c, d, 2, 3, 6, 7);
}

/* Along k they are.  Rows are read a cache line at a time: their distance is often a multiple of 4096, and few such
 * lines stay in the cache together. */
static void pack_deep(const k_store *src, size_t stride, size_t depth, size_t n, size_t width, float *panel)
{
    enum { LINE = 16 };
    size_t whole = n / 4 * 4, steps = depth / LINE * LINE;
    for (size_t k = 0; k < steps; k += LINE)
        for (size_t i = 0; i < whole; i += 4)
            for (size_t l = k; l < k + LINE; l += 4)
                turn(src + i * stride + l, stride, panel + l * width + i, width);
    for (size_t k = 0; k < depth; k++)
        for (size_t i = k < steps ? whole : 0; i < width; i++)
            panel[k * width + i] = i < n ? k_widen(src[i * stride + k]) : 0.0f;
}

static void pack_a(const struct gemm_args *g, size_t batch, size_t row, size_t n, float *panel)
{
    const k_store *a = K_CONST(g->a) + (k_i64)batch * g->a_batch;
    size_t stride = (size_t)g->a_stride, depth = (size_t)g->k;
    if (g->a_transposed)
        pack_wide(a + row, stride, depth, n, PANEL_ROWS, panel);
    else
        pack_deep(a + row * stride, stride, depth, n, PANEL_ROWS, panel);
}

static void pack_b(const struct gemm_args *g, size_t batch, size_t column, size_t n, float *panel)
{
    const k_store *b = K_CONST(g->b) + (k_i64)batch * g->b_batch;
    size_t stride = (size_t)g->b_stride, depth = (size_t)g->k;
    if (g->b_transposed)
        pack_deep(b + column * stride, stride, depth, n, PANEL_COLUMNS, panel);
    else
        pack_wide(b + column, stride, depth, n, PANEL_COLUMNS, panel);
}

/* ---- a tile ---- */

/* One row of the result, from its sums; the order of the steps is gemm_finish's. */
static void finish(const struct gemm_args *g, size_t batch, size_t row, size_t column, size_t n, float *v)
{
    k_i64 at = (k_i64)batch * g->c_batch + (k_i64)row * g->c_stride + (k_i64)column;
    for (size_t i = 0; i < n && g->alpha != 1.0f; i++)
        v[i] *= g->alpha;
    for (size_t i = 0; i < n && g->bias; i++)
        v[i] += g->bias[g->bias_rows ? row : column + i];
    for (size_t i = 0; i < n && g->before; i++)
        K_MUT(g->before)[at + (k_i64)i] = k_narrow(v[i]);
    for (size_t i = 0; i < n && g->gelu; i++)
        v[i] = k_gelu(v[i]);
    for (size_t i = 0; i < n && g->residual; i++)
        v[i] += k_widen(K_CONST(g->residual)[at + (k_i64)i]);
    float *wide = (float *)g->c + at;
    k_store *c = K_MUT(g->c) + at;
    for (size_t i = 0; i < n && g->beta != 0.0f; i++)
        v[i] = k_fma(g->beta, g->c_f32 ? wide[i] : k_widen(c[i]), v[i]);
    if (g->c_f32)
        memcpy(wide, v, n * sizeof(*v));
    else
        for (size_t i = 0; i < n; i++)
            c[i] = k_narrow(v[i]);
}

static void make_tile(const struct gemm_cpu_tile *t)
{
    enum { STRIDE = (GEMM_CPU_COLUMNS + PANEL_COLUMNS - 1) / PANEL_COLUMNS * PANEL_COLUMNS };
    float sums[(GEMM_CPU_ROWS + PANEL_ROWS) * STRIDE] __attribute__((aligned(64)));
    size_t depth = (size_t)t->args->k;
    if (!depth)
        memset(sums, 0, sizeof(sums));
    for (size_t k = 0; k < depth; k += GEMM_CPU_DEPTH) {
        size_t n = depth - k < GEMM_CPU_DEPTH ? depth - k : GEMM_CPU_DEPTH;
        for (size_t j = 0; j < t->columns; j += PANEL_COLUMNS)
            for (size_t i = 0; i < t->rows; i += PANEL_ROWS)
                multiply(n, t->a + i * depth + k * PANEL_ROWS, t->b + j * depth + k * PANEL_COLUMNS,
                         sums + i * STRIDE + j, STRIDE, k > 0);
    }
    for (size_t i = 0; i < t->rows; i++)
        finish(t->args, t->batch, t->row + i, t->column, t->columns, sums + i * STRIDE);
}

extern const struct gemm_cpu K_NAME(gemm_cpu);
const struct gemm_cpu K_NAME(gemm_cpu) = { PANEL_ROWS, PANEL_COLUMNS, pack_a, pack_b, make_tile };
