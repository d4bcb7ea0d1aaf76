/* SPDX-License-Identifier: Apache-2.0
 * Scanning with AVX-512: one register holds the sixteen lanes. */
#include "tensor/scan_scalar.h"

#ifdef __x86_64__
#include <immintrin.h>

struct lanes {
    __m512 min, max, sum, squares;
    uint64_t zero, subnormal, nan, inf;
};

static inline struct lanes lanes_load(const struct scan_lanes *l)
{
    return (struct lanes){ _mm512_loadu_ps(l->min),
                           _mm512_loadu_ps(l->max),
                           _mm512_loadu_ps(l->sum),
                           _mm512_loadu_ps(l->squares),
                           l->zero,
                           l->subnormal,
                           l->nan,
                           l->inf };
}

static inline void lanes_store(const struct lanes *v, struct scan_lanes *l)
{
    _mm512_storeu_ps(l->min, v->min);
    _mm512_storeu_ps(l->max, v->max);
    _mm512_storeu_ps(l->sum, v->sum);
    _mm512_storeu_ps(l->squares, v->squares);
    l->zero = v->zero, l->subnormal = v->subnormal, l->nan = v->nan, l->inf = v->inf;
}

static inline __m512i magnitude(__m512 x)
{
    return _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(SCAN_MAGNITUDE));
}

/* Zero, subnormal, infinite or NaN: what has to be counted. */
static inline __mmask16 special(__m512 x, __m512i smallest, __m512i span)
{
    return _mm512_cmpge_epu32_mask(_mm512_sub_epi32(magnitude(x), smallest), span);
}

static inline void take(struct lanes *v, __m512 x)
{
    v->min = _mm512_min_ps(x, v->min);
    v->max = _mm512_max_ps(x, v->max);
    v->sum = _mm512_add_ps(v->sum, x);
    v->squares = _mm512_add_ps(v->squares, _mm512_mul_ps(x, x));
}

static inline void take_and_count(struct lanes *v, __m512 x, __m512i smallest)
{
    __m512i m = magnitude(x), inf = _mm512_set1_epi32(SCAN_INF_BITS);
    __mmask16 finite = _mm512_cmplt_epu32_mask(m, inf), small = _mm512_cmplt_epu32_mask(m, smallest);
    __mmask16 zero = _mm512_testn_epi32_mask(m, m);
    v->min = _mm512_mask_min_ps(v->min, finite, x, v->min);
    v->max = _mm512_mask_max_ps(v->max, finite, x, v->max);
    v->sum = _mm512_mask_add_ps(v->sum, finite, v->sum, x);
    v->squares = _mm512_mask_add_ps(v->squares, finite, v->squares, _mm512_mul_ps(x, x));
    v->zero += (uint64_t)_mm_popcnt_u32(zero);
    v->subnormal += (uint64_t)_mm_popcnt_u32((unsigned)(small & ~zero));
    v->inf += (uint64_t)_mm_popcnt_u32(_mm512_cmpeq_epu32_mask(m, inf));
    v->nan += (uint64_t)_mm_popcnt_u32(_mm512_cmpgt_epu32_mask(m, inf));
}

static inline void take_four(struct lanes *v, const __m512 x[4], uint32_t smallest)
{
    __m512i least = _mm512_set1_epi32((int)smallest),
            span = _mm512_set1_epi32((int)(SCAN_INF_BITS - smallest));
    unsigned any = special(x[0], least, span) | special(x[1], least, span) | special(x[2], least, span) |
                   special(x[3], least, span);
    if (__builtin_expect(any == 0, 1))
        for (int k = 0; k < 4; k++)
            take(v, x[k]);
    else
        for (int k = 0; k < 4; k++)
            take_and_count(v, x[k], least);
}

static inline __m512 load_f32(const void *values, size_t i)
{
    return _mm512_loadu_ps((const void *)((const f32_any *)values + i));
}

static inline __m512 load_bf16(const void *values, size_t i)
{
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)((const u16_any *)values + i)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

static inline __m512 load_f16(const void *values, size_t i)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)((const u16_any *)values + i)));
}

#define SCAN(name, widen_one)                                                                          \
    static void scan_##name(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes) \
    {                                                                                                  \
        struct lanes v = lanes_load(lanes);                                                            \
        size_t i = 0;                                                                                  \
        for (; i + 64 <= n; i += 64) {                                                                 \
            __m512 x[4] = { load_##name(values, i), load_##name(values, i + 16),                       \
                            load_##name(values, i + 32), load_##name(values, i + 48) };                \
            take_four(&v, x, smallest);                                                                \
        }                                                                                              \
        lanes_store(&v, lanes);                                                                        \
        for (; i < n; i++)                                                                             \
            scan_one(lanes, i % SCAN_LANES, widen_one, smallest);                                      \
    }
SCAN(f32, scalar_bits((const f32_any *)values + i))
SCAN(bf16, scalar_from_bf16(((const u16_any *)values)[i]))
SCAN(f16, scalar_from_f16(((const u16_any *)values)[i]))

void scan_ops_init_avx512(struct scan_ops *ops)
{
    *ops = (struct scan_ops){ scan_f32, scan_bf16, scan_f16 };
}
#endif
