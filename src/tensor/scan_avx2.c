/* SPDX-License-Identifier: Apache-2.0
 * Scanning with AVX2 and F16C: two registers hold the sixteen lanes. */
#include "tensor/scan_scalar.h"

#ifdef __x86_64__
#include <immintrin.h>

struct lanes {
    __m256 min[2], max[2], sum[2], squares[2];
    uint64_t zero, subnormal, nan, inf;
};

static inline struct lanes lanes_load(const struct scan_lanes *l)
{
    struct lanes v = { .zero = l->zero, .subnormal = l->subnormal, .nan = l->nan, .inf = l->inf };
    for (int h = 0; h < 2; h++) {
        v.min[h] = _mm256_loadu_ps(l->min + 8 * h);
        v.max[h] = _mm256_loadu_ps(l->max + 8 * h);
        v.sum[h] = _mm256_loadu_ps(l->sum + 8 * h);
        v.squares[h] = _mm256_loadu_ps(l->squares + 8 * h);
    }
    return v;
}

static inline void lanes_store(const struct lanes *v, struct scan_lanes *l)
{
    for (int h = 0; h < 2; h++) {
        _mm256_storeu_ps(l->min + 8 * h, v->min[h]);
        _mm256_storeu_ps(l->max + 8 * h, v->max[h]);
        _mm256_storeu_ps(l->sum + 8 * h, v->sum[h]);
        _mm256_storeu_ps(l->squares + 8 * h, v->squares[h]);
    }
    l->zero = v->zero, l->subnormal = v->subnormal, l->nan = v->nan, l->inf = v->inf;
}

static inline __m256i magnitude(__m256 x)
{
    return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(SCAN_MAGNITUDE));
}

/* Zero, subnormal, infinite or NaN: what has to be counted.  (There is no unsigned comparison; the larger of the
 * two being the left one is the same.) */
static inline __m256i special(__m256 x, __m256i smallest, __m256i span)
{
    __m256i above = _mm256_sub_epi32(magnitude(x), smallest);
    return _mm256_cmpeq_epi32(_mm256_max_epu32(above, span), above);
}

static inline void take(struct lanes *v, int h, __m256 x)
{
    v->min[h] = _mm256_min_ps(x, v->min[h]);
    v->max[h] = _mm256_max_ps(x, v->max[h]);
    v->sum[h] = _mm256_add_ps(v->sum[h], x);
    v->squares[h] = _mm256_add_ps(v->squares[h], _mm256_mul_ps(x, x));
}

static inline uint64_t count(__m256i mask)
{
    return (uint64_t)_mm_popcnt_u32((unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(mask)));
}

static inline void take_and_count(struct lanes *v, int h, __m256 x, __m256i smallest)
{
    __m256i m = magnitude(x), inf = _mm256_set1_epi32(SCAN_INF_BITS);
    __m256i zero = _mm256_cmpeq_epi32(m, _mm256_setzero_si256()), small = _mm256_cmpgt_epi32(smallest, m);
    __m256 finite = _mm256_castsi256_ps(_mm256_cmpgt_epi32(inf, m));
    v->min[h] = _mm256_blendv_ps(v->min[h], _mm256_min_ps(x, v->min[h]), finite);
    v->max[h] = _mm256_blendv_ps(v->max[h], _mm256_max_ps(x, v->max[h]), finite);
    v->sum[h] = _mm256_blendv_ps(v->sum[h], _mm256_add_ps(v->sum[h], x), finite);
    v->squares[h] =
        _mm256_blendv_ps(v->squares[h], _mm256_add_ps(v->squares[h], _mm256_mul_ps(x, x)), finite);
    v->zero += count(zero);
    v->subnormal += count(_mm256_andnot_si256(zero, small));
    v->inf += count(_mm256_cmpeq_epi32(m, inf));
    v->nan += count(_mm256_cmpgt_epi32(m, inf));
}

static inline void take_four(struct lanes *v, const __m256 x[4], uint32_t smallest)
{
    __m256i least = _mm256_set1_epi32((int)smallest),
            span = _mm256_set1_epi32((int)(SCAN_INF_BITS - smallest));
    __m256i any = _mm256_or_si256(_mm256_or_si256(special(x[0], least, span), special(x[1], least, span)),
                                  _mm256_or_si256(special(x[2], least, span), special(x[3], least, span)));
    if (__builtin_expect(_mm256_testz_si256(any, any), 1))
        for (int k = 0; k < 4; k++)
            take(v, k % 2, x[k]);
    else
        for (int k = 0; k < 4; k++)
            take_and_count(v, k % 2, x[k], least);
}

static inline __m256 load_f32(const void *values, size_t i)
{
    return _mm256_loadu_ps((const void *)((const f32_any *)values + i));
}

static inline __m256 load_bf16(const void *values, size_t i)
{
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)((const u16_any *)values + i)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

static inline __m256 load_f16(const void *values, size_t i)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)((const u16_any *)values + i)));
}

#define SCAN(name, widen_one)                                                                                \
    static void scan_##name(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)       \
    {                                                                                                        \
        struct lanes v = lanes_load(lanes);                                                                  \
        size_t i = 0;                                                                                        \
        for (; i + 32 <= n; i += 32) {                                                                       \
            __m256 x[4] = { load_##name(values, i), load_##name(values, i + 8), load_##name(values, i + 16), \
                            load_##name(values, i + 24) };                                                   \
            take_four(&v, x, smallest);                                                                      \
        }                                                                                                    \
        lanes_store(&v, lanes);                                                                              \
        for (; i < n; i++)                                                                                   \
            scan_one(lanes, i % SCAN_LANES, widen_one, smallest);                                            \
    }
SCAN(f32, scalar_bits((const f32_any *)values + i))
SCAN(bf16, scalar_from_bf16(((const u16_any *)values)[i]))
SCAN(f16, scalar_from_f16(((const u16_any *)values)[i]))

void scan_ops_init_avx2(struct scan_ops *ops)
{
    *ops = (struct scan_ops){ scan_f32, scan_bf16, scan_f16 };
}
#endif
