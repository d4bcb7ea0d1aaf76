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
        for (size_t i = 0; i < n; i += PANEL_ROWS)
            pack_deep(a + (row + i) * stride, stride, depth, n - i < PANEL_ROWS ? n - i : PANEL_ROWS,
                      PANEL_ROWS, panel + i * depth);
}

static void pack_b(const struct gemm_args *g, size_t batch, size_t column, size_t n, float *panel)
{
    const k_store *b = K_CONST(g->b) + (k_i64)batch * g->b_batch;
    size_t stride = (size_t)g->b_stride, depth = (size_t)g->k;
    if (g->b_transposed)
        for (size_t i = 0; i < n; i += PANEL_COLUMNS)
            pack_deep(b + (column + i) * stride, stride, depth, n - i < PANEL_COLUMNS ? n - i : PANEL_COLUMNS,
                      PANEL_COLUMNS, panel + i * depth);
    else
        pack_wide(b + column, stride, depth, n, PANEL_COLUMNS, panel);
}

/* One row of the result, from its sums; the order of the steps is gemm_finish's. */
static void finish(const struct gemm_args *g, size_t batch, size_t row, size_t column, size_t n,
                   float *restrict v)
{
    k_i64 at = (k_i64)batch * g->c_batch + (k_i64)row * g->c_stride + (k_i64)column;
    float alpha = g->alpha, beta = g->beta, row_bias = g->bias && g->bias_rows ? g->bias[row] : 0.0f;
    const float *bias = g->bias && !g->bias_rows ? g->bias + column : NULL;
    const k_store *residual = g->residual ? K_CONST(g->residual) + at : NULL;
    k_store *before = g->before ? K_MUT(g->before) + at : NULL, *c = K_MUT(g->c) + at;
    float *wide = g->c_f32 ? (float *)g->c + at : NULL;
    for (size_t i = 0; i < n && alpha != 1.0f; i++)
        v[i] *= alpha;
    for (size_t i = 0; i < n && bias; i++)
        v[i] += bias[i];
    for (size_t i = 0; i < n && g->bias_rows; i++)
        v[i] += row_bias;
    for (size_t i = 0; i < n && before; i++)
        before[i] = k_narrow(v[i]);
    for (size_t i = 0; i < n && g->gelu; i++)
        v[i] = k_gelu(v[i]);
    for (size_t i = 0; i < n && residual; i++)
        v[i] += k_widen(residual[i]);
    for (size_t i = 0; i < n && beta != 0.0f && wide; i++)
        v[i] = k_fma(beta, wide[i], v[i]);
    for (size_t i = 0; i < n && beta != 0.0f && !wide; i++)
        v[i] = k_fma(beta, k_widen(c[i]), v[i]);
    for (size_t i = 0; i < n && wide; i++)
        wide[i] = v[i];
    for (size_t i = 0; i < n && !wide; i++)
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
