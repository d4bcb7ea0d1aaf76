/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/repair.h"

#include <assert.h>
#include <string.h>

/* For each floating-point dtype: the bits of a magnitude, the largest finite one, and infinity (e4m3 has only
 * NaN). */
static const struct code {
    uint64_t magnitude, largest, infinity;
} codes[DTYPE_COUNT] = {
    [DTYPE_F64] = { 0x7fffffffffffffff, 0x7fefffffffffffff, 0x7ff0000000000000 },
    [DTYPE_F32] = { 0x7fffffff, 0x7f7fffff, 0x7f800000 },
    [DTYPE_F16] = { 0x7fff, 0x7bff, 0x7c00 },
    [DTYPE_BF16] = { 0x7fff, 0x7f7f, 0x7f80 },
    [DTYPE_F8_E4M3] = { 0x7f, 0x7e, 0xff },
    [DTYPE_F8_E5M2] = { 0x7f, 0x7b, 0x7c },
};

/* Which dtypes can represent every value of another. */
static bool holds_all(enum dtype to, enum dtype from)
{
    bool wide = to == DTYPE_F64 || (to == DTYPE_F32 && from != DTYPE_F64);
    return to == from || wide || (from == DTYPE_F8_E5M2 && (to == DTYPE_F16 || to == DTYPE_BF16)) ||
           (from == DTYPE_F8_E4M3 && (to == DTYPE_F16 || to == DTYPE_BF16));
}

bool repair_is_needed(enum dtype to, enum dtype from, const struct repair_options *how)
{
    return how->clamp || how->replace_nan || !holds_all(to, from);
}

static uint64_t load(const void *p, size_t size, size_t i)
{
    uint64_t v = 0;
    memcpy(&v, (const char *)p + i * size, size); /* the formats are little-endian, as files are */
    return v;
}

static void store(void *p, size_t size, size_t i, uint64_t v)
{
    memcpy((char *)p + i * size, &v, size);
}

enum { BLOCK = 128 }; /* their count fits in a byte, so that sums have the width of the elements */

struct block_counts {
    unsigned zero, special;
};

/* The same three lines for each width; with a constant length the compiler vectorizes them. */
#define COUNT_WIDTH(width)                                                                                \
    static inline struct block_counts count_##width(const void *p, size_t n, const struct code *c)        \
    {                                                                                                     \
        typedef uint##width##_t any __attribute__((aligned(1), may_alias));                               \
        const any *v = p;                                                                                 \
        uint##width##_t magnitude = (uint##width##_t)c->magnitude, largest = (uint##width##_t)c->largest; \
        uint##width##_t zero = 0, special = 0;                                                            \
        for (size_t i = 0; i < n; i++) {                                                                  \
            uint##width##_t m = v[i] & magnitude;                                                         \
            zero = (uint##width##_t)(zero + (m == 0));                                                    \
            special = (uint##width##_t)(special + (m > largest));                                         \
        }                                                                                                 \
        return (struct block_counts){ (unsigned)zero, (unsigned)special };                                \
    }                                                                                                     \
    static struct block_counts block_##width(const void *p, size_t n, const struct code *c)               \
    {                                                                                                     \
        return n == BLOCK ? count_##width(p, BLOCK, c) : count_##width(p, n, c);                          \
    }
COUNT_WIDTH(8)
COUNT_WIDTH(16)
COUNT_WIDTH(32)
COUNT_WIDTH(64)

static struct block_counts count_block(const void *p, enum dtype t, size_t n, const struct code *c)
{
    switch (dtype_size(t)) {
    case 1:
        return block_8(p, n, c);
    case 2:
        return block_16(p, n, c);
    case 4:
        return block_32(p, n, c);
    default:
        return block_64(p, n, c);
    }
}

/* Magnitudes order like their bits, so a limit is a code like any other. */
static struct code code_for(enum dtype t, const struct repair_options *how)
{
    struct code c = codes[t];
    uint64_t limit = 0;
    if (!how->clamp || how->limit <= 0)
        return c;
    dtype_convert(&limit, t, &how->limit, DTYPE_F64, 1, &(struct dtype_how){ .saturate = true });
    c.largest = limit & c.magnitude;
    return c;
}

static bool is_nan(const void *p, enum dtype t, size_t i)
{
    uint64_t m = load(p, dtype_size(t), i) & codes[t].magnitude;
    return t == DTYPE_F8_E4M3 ? m > codes[t].largest : m > codes[t].infinity;
}

static bool is_infinite(const void *p, enum dtype t, size_t i)
{
    return (load(p, dtype_size(t), i) & codes[t].magnitude) == codes[t].infinity;
}

static void replace_nan(void *dst, enum dtype to, size_t i, double value)
{
    dtype_convert((char *)dst + i * dtype_size(to), to, &value, DTYPE_F64, 1,
                  &(struct dtype_how){ .saturate = true });
}

static void repair_block(void *dst, enum dtype to, const void *src, enum dtype from, size_t n,
                         const struct repair_options *how, const struct code *c, struct repair_counts *counts)
{
    size_t size = dtype_size(to);
    for (size_t i = 0; i < n; i++) {
        uint64_t v = load(dst, size, i);
        if ((v & c->magnitude) <= c->largest)
            continue;
        bool nan = is_nan(src, from, i), changed = nan ? how->replace_nan : how->clamp;
        if (nan && changed)
            replace_nan(dst, to, i, how->nan);
        else if (changed)
            store(dst, size, i, (v & ~c->magnitude) | c->largest);
        counts->nans_replaced += nan && changed;
        counts->clamped += !nan && changed;
        counts->overflowed += !nan && !changed && !is_infinite(src, from, i);
    }
}

void repair_values(void *dst, enum dtype to, const void *src, enum dtype from, size_t n,
                   const struct repair_options *how, struct repair_counts *counts)
{
    assert(dst != src || to == from);
    struct code code = code_for(to, how);
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        char *out = (char *)dst + at * dtype_size(to);
        const char *in = (const char *)src + at * dtype_size(from);
        struct block_counts after = count_block(out, to, m, &code);
        if (after.zero)
            counts->underflowed += after.zero - count_block(in, from, m, &codes[from]).zero;
        if (after.special)
            repair_block(out, to, in, from, m, how, &code, counts);
    }
}
