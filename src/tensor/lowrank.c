/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/lowrank.h"

#include "base/int.h"
#include "tensor/dtype.h"
#include <string.h>

typedef float vec4 __attribute__((vector_size(16)));
typedef float vec8 __attribute__((vector_size(32)));
typedef float vec16 __attribute__((vector_size(64)));
enum { COLS = 32, ROWS = 4, DEEP = 256 };

#define INLINE static inline __attribute__((always_inline))

static size_t panels_of(size_t cols)
{
    return div_up(cols, COLS);
}

size_t lowrank_packed(size_t cols, size_t rank)
{
    return panels_of(cols) * COLS * rank;
}

/* A panel is COLS columns side by side, to a depth of DEEP: in the matrix itself they are often a power of
 * two apart, which fills one set of the cache.  Columns past the edge are zero. */
static void pack_panel(float *panel, const float *down, size_t cols, size_t at, size_t deep)
{
    size_t n = at_most(cols - at, COLS);
    memset(panel, 0, deep * COLS * sizeof(float));
    for (size_t k = 0; k < deep; k++)
        memcpy(panel + k * COLS, down + k * cols + at, n * sizeof(float));
}

void lowrank_pack(float *packed, const float *down, size_t cols, size_t rank)
{
    for (size_t from = 0; from < rank; from += DEEP) {
        size_t deep = at_most(rank - from, DEEP);
        for (size_t at = 0; at < cols; at += COLS, packed += deep * COLS)
            pack_panel(packed, down + from * cols, cols, at, deep);
    }
}

/* ROWS rows by two vectors of the product; rows past the last repeat the first.  The sums have names, since
 * gcc keeps an array of them in memory. */
#define DEFINE_TILE(name, vec)                                                                               \
    INLINE void name(float *out, const float *up, size_t rank, size_t rows, const float *panel, size_t deep) \
    {                                                                                                        \
        const float *u0 = up, *u1 = up + (rows > 1 ? 1 : 0) * rank, *u2 = up + (rows > 2 ? 2 : 0) * rank,    \
                    *u3 = up + (rows > 3 ? 3 : 0) * rank;                                                    \
        vec a0 = { 0 }, b0 = a0, a1 = a0, b1 = a0, a2 = a0, b2 = a0, a3 = a0, b3 = a0;                       \
        for (size_t k = 0; k < deep; k++) {                                                                  \
            vec a, b;                                                                                        \
            memcpy(&a, panel + k * COLS, sizeof(a));                                                         \
            memcpy(&b, panel + k * COLS + sizeof(a) / sizeof(float), sizeof(b));                             \
            a0 += u0[k] * a, b0 += u0[k] * b;                                                                \
            a1 += u1[k] * a, b1 += u1[k] * b;                                                                \
            a2 += u2[k] * a, b2 += u2[k] * b;                                                                \
            a3 += u3[k] * a, b3 += u3[k] * b;                                                                \
        }                                                                                                    \
        const vec sums[ROWS][2] = { { a0, b0 }, { a1, b1 }, { a2, b2 }, { a3, b3 } };                        \
        for (size_t r = 0; r < ROWS; r++)                                                                    \
            memcpy(out + r * COLS, sums[r], sizeof(sums[r]));                                                \
    }
DEFINE_TILE(tile4, vec4)
#ifdef __x86_64__
DEFINE_TILE(tile8, vec8)
DEFINE_TILE(tile16, vec16)
#endif

typedef void tile_fn(float *out, const float *up, size_t rank, size_t rows, const float *panel, size_t deep);

INLINE void add_row(float *w, const float *product, size_t n, float scale)
{
    for (size_t c = 0; c < n; c++)
        w[c] += scale * product[c];
}

/* With a constant length the compiler makes vectors of a row. */
INLINE void add_tile(float *w, size_t cols, const float *product, size_t rows, size_t n, float scale)
{
    for (size_t r = 0; r < rows; r++)
        if (n == COLS)
            add_row(w + r * cols, product + r * COLS, COLS, scale);
        else
            add_row(w + r * cols, product + r * COLS, n, scale);
}

/* COLS columns of down, of which n are there, to a depth. */
struct panel {
    const float *at;
    size_t n, deep;
};

/* All rows against one panel. */
INLINE void add_panel(tile_fn *tile, size_t width, float *w, struct lowrank l, struct panel p)
{
    float product[ROWS * COLS];
    for (size_t r = 0; r < l.rows; r += ROWS) {
        size_t m = l.rows - r < ROWS ? l.rows - r : ROWS;
        for (size_t c = 0; c < COLS; c += width)
            tile(product + c, l.up + r * l.rank, l.rank, m, p.at + c, p.deep);
        add_tile(w + r * l.cols, l.cols, product, m, p.n, l.scale);
    }
}

INLINE void add(tile_fn *tile, size_t width, float *w, struct lowrank l)
{
    for (size_t from = 0; from < l.rank; from += DEEP, l.up += DEEP) {
        size_t deep = at_most(l.rank - from, DEEP);
        for (size_t at = 0; at < l.cols; at += COLS, l.packed += deep * COLS)
            add_panel(tile, width, w + at, l, (struct panel){ l.packed, at_most(l.cols - at, COLS), deep });
    }
}

typedef void add_fn(float *w, const struct lowrank *product);

static void add_plain(float *w, const struct lowrank *product)
{
    add(tile4, 8, w, *product);
}

#ifdef __x86_64__
/* Without FMA on purpose: it would round differently than a machine that lacks it. */
__attribute__((target("avx2,no-fma"))) static void add_avx2(float *w, const struct lowrank *product)
{
    add(tile8, 16, w, *product);
}

/* This set cannot be had without FMA; -ffp-contract=off keeps the compiler from it. */
__attribute__((target("avx512f"))) static void add_avx512(float *w, const struct lowrank *product)
{
    add(tile16, 32, w, *product);
}
#endif

static add_fn *choose(unsigned cpu)
{
#ifdef __x86_64__
    if (cpu & DTYPE_CPU_AVX512)
        return add_avx512;
    if (cpu & DTYPE_CPU_AVX2)
        return add_avx2;
#endif
    (void)cpu;
    return add_plain;
}

void lowrank_add_with(unsigned cpu, float *w, const struct lowrank *product)
{
    choose(cpu)(w, product);
}

void lowrank_add(float *w, const struct lowrank *product)
{
    lowrank_add_with(dtype_cpu(), w, product);
}
