/* SPDX-License-Identifier: Apache-2.0
 * Compiled once for each K_STORAGE and K_VARIANT. */
#include "gpu/gemm_cpu.h"

#include "gpu/cpu_tile.h"
#include <string.h>

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
                multiply(t->columns - j, n, t->a + i * depth + k * PANEL_ROWS,
                         t->b + j * depth + k * PANEL_COLUMNS, sums + i * STRIDE + j, STRIDE, k > 0);
    }
    for (size_t i = 0; i < t->rows; i++)
        finish(t->args, t->batch, t->row + i, t->column, t->columns, sums + i * STRIDE);
}

extern const struct gemm_cpu K_NAME(gemm_cpu);
const struct gemm_cpu K_NAME(gemm_cpu) = { PANEL_ROWS, PANEL_COLUMNS, pack_a, pack_b, make_tile };
