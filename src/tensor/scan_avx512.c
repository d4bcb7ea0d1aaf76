/* SPDX-License-Identifier: Apache-2.0
 * Scanning with AVX-512: one register holds the sixteen lanes. */
#include "tensor/scan_scalar.h"

#ifdef __x86_64__
#include <immintrin.h>

/* Counts are kept in lanes as well.  (Not with popcnt: gcc 12 stores a 16-bit mask that it has no register for, and
 * counts the 32 bits it finds there.) */
struct lanes {
    __m512 min, max, sum, squares;
    __m512i zero, small, nan, inf; /* small: zero or subnormal */
};

static inline struct lanes lanes_load(const struct scan_lanes *l)
{
    __m512i none = _mm512_setzero_si512();
    return (struct lanes){ _mm512_loadu_ps(l->min),
                           _mm512_loadu_ps(l->max),
                           _mm512_loadu_ps(l->sum),
                           _mm512_loadu_ps(l->squares),
                           none,
                           none,
                           none,
                           none };
}

static inline uint64_t total(__m512i counts)
{
    return (uint64_t)_mm512_reduce_add_epi32(counts);
}

static inline void lanes_store(const struct lanes *v, struct scan_lanes *l)
{
    _mm512_storeu_ps(l->min, v->min);
    _mm512_storeu_ps(l->max, v->max);
    _mm512_storeu_ps(l->sum, v->sum);
    _mm512_storeu_ps(l->squares, v->squares);
    l->zero += total(v->zero);
    l->subnormal += total(v->small) - total(v->zero);
    l->nan += total(v->nan);
    l->inf += total(v->inf);
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

static inline __m512i count(__m512i counts, __mmask16 mask)
{
    return _mm512_mask_sub_epi32(counts, mask, counts, _mm512_set1_epi32(-1));
}

static inline void take_and_count(struct lanes *v, __m512 x, __m512i smallest)
{
    __m512i m = magnitude(x), inf = _mm512_set1_epi32(SCAN_INF_BITS);
    __mmask16 finite = _mm512_cmplt_epu32_mask(m, inf);
    v->min = _mm512_mask_min_ps(v->min, finite, x, v->min);
    v->max = _mm512_mask_max_ps(v->max, finite, x, v->max);
    v->sum = _mm512_mask_add_ps(v->sum, finite, v->sum, x);
    v->squares = _mm512_mask_add_ps(v->squares, finite, v->squares, _mm512_mul_ps(x, x));
    v->zero = count(v->zero, _mm512_testn_epi32_mask(m, m));
    v->small = count(v->small, _mm512_cmplt_epu32_mask(m, smallest));
    v->inf = count(v->inf, _mm512_cmpeq_epu32_mask(m, inf));
    v->nan = count(v->nan, _mm512_cmpgt_epu32_mask(m, inf));
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

static void scan_f32(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)
{
    const f32_any *src = values;
    struct lanes v = lanes_load(lanes);
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m512 x[4];
        for (int k = 0; k < 4; k++)
            x[k] = _mm512_loadu_ps((const void *)(src + i + 16 * k));
        take_four(&v, x, smallest);
    }
    lanes_store(&v, lanes);
    for (; i < n; i++)
        scan_one(lanes, SCAN_LANE_F32(i), scalar_bits(src + i), smallest);
}

/* Numbers of 16 bits are looked at as whole numbers, 32 at a time, and widened only for the sums. */
struct range16 {
    __m512i min, max; /* keys, which are ordered as their numbers are */
};

static inline __m512i key16(__m512i raw)
{
    enum { A_XOR_B_AND_C = 0x78 };
    return _mm512_ternarylogic_epi32(raw, _mm512_srai_epi16(raw, 15), _mm512_set1_epi16(0x7fff),
                                     A_XOR_B_AND_C);
}

static inline __mmask32 special16(__m512i raw, int least, int inf)
{
    __m512i m = _mm512_and_si512(raw, _mm512_set1_epi16(0x7fff));
    return _mm512_cmpge_epu16_mask(_mm512_sub_epi16(m, _mm512_set1_epi16((short)least)),
                                   _mm512_set1_epi16((short)(inf - least)));
}

/* The square of a 16-bit number is exact in f32, so that fusing it into the sum rounds no other way. */
static inline void take_sums(struct lanes *v, __m512 x)
{
    v->sum = _mm512_add_ps(v->sum, x);
    v->squares = _mm512_fmadd_ps(x, x, v->squares);
}

static inline void widen_bf16(__m512i raw, __m512 x[2])
{
    x[0] = _mm512_castsi512_ps(_mm512_slli_epi32(raw, 16));
    x[1] = _mm512_castsi512_ps(_mm512_and_si512(raw, _mm512_set1_epi32((int)0xffff0000)));
}

static inline void widen_f16(__m512i raw, __m512 x[2])
{
    x[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(raw));
    x[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(raw, 1));
}

typedef void widen16(__m512i raw, __m512 x[2]);

static inline void take_raw(struct lanes *v, struct range16 *r, __m512i raw, widen16 *widen)
{
    __m512i key = key16(raw);
    __m512 x[2];
    widen(raw, x);
    r->min = _mm512_min_epi16(r->min, key);
    r->max = _mm512_max_epi16(r->max, key);
    take_sums(v, x[0]);
    take_sums(v, x[1]);
}

static inline void count_raw(struct lanes *v, __m512i raw, uint32_t smallest, widen16 *widen)
{
    __m512i least = _mm512_set1_epi32((int)smallest);
    __m512 x[2];
    widen(raw, x);
    take_and_count(v, x[0], least);
    take_and_count(v, x[1], least);
}

static void range16_join(const struct range16 *r, uint32_t (*widen_one)(uint16_t), struct scan_lanes *lanes)
{
    int16_t min[32], max[32];
    _mm512_storeu_si512(min, r->min);
    _mm512_storeu_si512(max, r->max);
    for (int i = 1; i < 32; i++) {
        min[0] = min[i] < min[0] ? min[i] : min[0];
        max[0] = max[i] > max[0] ? max[i] : max[0];
    }
    scan_join_keys(lanes, min[0], max[0], widen_one);
}

/* least: the smallest magnitude whose square is a normal f32, or the smallest normal number if that is larger. */
static inline size_t scan_16(const u16_any *src, size_t n, int least, int inf, uint32_t smallest,
                             widen16 *widen, struct lanes *v, struct range16 *r)
{
    size_t i = 0;
    for (; i + 128 <= n; i += 128) {
        __m512i raw[4];
        __mmask32 any = 0;
        for (int k = 0; k < 4; k++) {
            raw[k] = _mm512_loadu_si512((const void *)(src + i + 32 * k));
            any |= special16(raw[k], least, inf);
        }
        if (__builtin_expect(any == 0, 1))
            for (int k = 0; k < 4; k++)
                take_raw(v, r, raw[k], widen);
        else
            for (int k = 0; k < 4; k++)
                count_raw(v, raw[k], smallest, widen);
    }
    return i;
}

#define SCAN(name, least, inf, lane)                                                                   \
    static void scan_##name(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes) \
    {                                                                                                  \
        struct lanes v = lanes_load(lanes);                                                            \
        struct range16 r = { _mm512_set1_epi16(INT16_MAX), _mm512_set1_epi16(INT16_MIN) };             \
        size_t i = scan_16(values, n, least, inf, smallest, widen_##name, &v, &r);                     \
        lanes_store(&v, lanes);                                                                        \
        range16_join(&r, scan_##name##_bits, lanes);                                                   \
        for (; i < n; i++)                                                                             \
            scan_one(lanes, lane(i), scan_##name##_bits(((const u16_any *)values)[i]), smallest);      \
    }
SCAN(bf16, SCAN_BF16_LEAST, SCAN_BF16_INF, SCAN_LANE_BF16)
SCAN(f16, SCAN_F16_LEAST, SCAN_F16_INF, SCAN_LANE_F16)

void scan_ops_init_avx512(struct scan_ops *ops)
{
    *ops = (struct scan_ops){ scan_f32, scan_bf16, scan_f16 };
}
#endif
