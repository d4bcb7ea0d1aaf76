/* SPDX-License-Identifier: Apache-2.0
 * Scanning with AVX-512: one register holds sixteen lanes. */
#include "tensor/scan_scalar.h"

#ifdef __x86_64__
#include <immintrin.h>

/* Counts are kept in lanes as well.  (Not with popcnt: gcc 12 stores a 16-bit mask that it has no register
 * for, and counts the 32 bits it finds there.) */
struct lanes {
    __m512 min, max, sum[2], squares[2];
    __m512i zero, small, nan, inf; /* small: zero or subnormal */
};

static inline struct lanes lanes_load(const struct scan_lanes *l)
{
    __m512i none = _mm512_setzero_si512();
    return (struct lanes){
        .min = _mm512_loadu_ps(l->min),
        .max = _mm512_loadu_ps(l->max),
        .sum = { _mm512_loadu_ps(l->sum), _mm512_loadu_ps(l->sum + 16) },
        .squares = { _mm512_loadu_ps(l->squares), _mm512_loadu_ps(l->squares + 16) },
        .zero = none,
        .small = none,
        .nan = none,
        .inf = none,
    };
}

static inline uint64_t total(__m512i counts)
{
    return (uint64_t)_mm512_reduce_add_epi32(counts);
}

static inline void lanes_store(const struct lanes *v, struct scan_lanes *l)
{
    _mm512_storeu_ps(l->min, v->min);
    _mm512_storeu_ps(l->max, v->max);
    for (int h = 0; h < 2; h++) {
        _mm512_storeu_ps(l->sum + 16 * h, v->sum[h]);
        _mm512_storeu_ps(l->squares + 16 * h, v->squares[h]);
    }
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
    v->sum[0] = _mm512_add_ps(v->sum[0], x);
    v->squares[0] = _mm512_add_ps(v->squares[0], _mm512_mul_ps(x, x));
}

static inline __m512i count(__m512i counts, __mmask16 mask)
{
    return _mm512_mask_sub_epi32(counts, mask, counts, _mm512_set1_epi32(-1));
}

/* h: which half of the lanes. */
static inline void take_and_count(struct lanes *v, int h, __m512 x, __m512i smallest)
{
    __m512i m = magnitude(x), inf = _mm512_set1_epi32(SCAN_INF_BITS);
    __mmask16 finite = _mm512_cmplt_epu32_mask(m, inf);
    v->min = _mm512_mask_min_ps(v->min, finite, x, v->min);
    v->max = _mm512_mask_max_ps(v->max, finite, x, v->max);
    v->sum[h] = _mm512_mask_add_ps(v->sum[h], finite, v->sum[h], x);
    v->squares[h] = _mm512_mask_add_ps(v->squares[h], finite, v->squares[h], _mm512_mul_ps(x, x));
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
            take_and_count(v, 0, x[k], least);
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
static inline void take_sums(struct lanes *v, int h, __m512 x)
{
    v->sum[h] = _mm512_add_ps(v->sum[h], x);
    v->squares[h] = _mm512_fmadd_ps(x, x, v->squares[h]);
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
    take_sums(v, 0, x[0]);
    take_sums(v, 1, x[1]);
}

static inline void count_raw(struct lanes *v, __m512i raw, uint32_t smallest, widen16 *widen)
{
    __m512i least = _mm512_set1_epi32((int)smallest);
    __m512 x[2];
    widen(raw, x);
    take_and_count(v, 0, x[0], least);
    take_and_count(v, 1, x[1], least);
}

static void range16_join(const struct range16 *r, uint32_t (*widen_one)(uint16_t), struct scan_lanes *lanes)
{
    int16_t min[32], max[32];
    _mm512_storeu_si512(min, r->min);
    _mm512_storeu_si512(max, r->max);
    scan_join_keys(lanes, min, max, 32, widen_one);
}

/* least: the smallest magnitude whose square is a normal f32, or the smallest normal number if that is
 * larger. */
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

static inline struct range16 range16_none(void)
{
    return (struct range16){ _mm512_set1_epi16(INT16_MAX), _mm512_set1_epi16(INT16_MIN) };
}

SCAN_16(bf16, SCAN_BF16_LEAST, SCAN_BF16_INF, SCAN_LANE_BF16)
SCAN_16(f16, SCAN_F16_LEAST, SCAN_F16_INF, SCAN_LANE_F16)

/* Numbers of 8 bits, 64 at a time: compared and counted as bytes, widened through f16 for the sums. */
struct range8 {
    __m512i min, max, least, most;
};

static inline void range8_take(struct range8 *r, __m512i raw)
{
    r->min = _mm512_min_epi8(r->min, raw);
    r->max = _mm512_max_epi8(r->max, raw);
    r->least = _mm512_min_epu8(r->least, raw);
    r->most = _mm512_max_epu8(r->most, raw);
}

static void range8_join(const struct range8 *r, uint32_t (*widen_one)(uint8_t), struct scan_lanes *lanes)
{
    int8_t min[64], max[64];
    uint8_t least[64], most[64];
    _mm512_storeu_si512(min, r->min);
    _mm512_storeu_si512(max, r->max);
    _mm512_storeu_si512(least, r->least);
    _mm512_storeu_si512(most, r->most);
    struct scan_range8 all = scan_range8_of(min, max, least, most, 64);
    scan_join_range8(lanes, &all, widen_one);
}

/* The numbers at even and at odd places, as f16. */
typedef void expand8(__m512i raw, __m512i f16[2]);

static inline void expand_e5m2(__m512i raw, __m512i f16[2])
{
    f16[0] = _mm512_slli_epi16(raw, 8);
    f16[1] = _mm512_and_si512(raw, _mm512_set1_epi16((short)0xff00));
}

static inline __m512i shift_e4m3(__m512i upper)
{
    enum { A_OR_B_AND_C = 0xf8 };
    __m512i magnitude = _mm512_and_si512(_mm512_srli_epi16(upper, 1), _mm512_set1_epi16(0x3f80));
    return _mm512_ternarylogic_epi32(magnitude, upper, _mm512_set1_epi16((short)0x8000), A_OR_B_AND_C);
}

static inline void expand_e4m3(__m512i raw, __m512i f16[2])
{
    f16[0] = shift_e4m3(_mm512_slli_epi16(raw, 8));
    f16[1] = shift_e4m3(raw);
}

static inline void take_8(struct lanes *v, __m512i raw, expand8 *expand)
{
    __m512i f16[2];
    expand(raw, f16);
    for (int k = 0; k < 2; k++) {
        take_sums(v, 0, _mm512_cvtph_ps(_mm512_castsi512_si256(f16[k])));
        take_sums(v, 1, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(f16[k], 1)));
    }
}

static inline uint64_t count8(__mmask64 mask)
{
    return (uint64_t)_mm_popcnt_u64(mask);
}

/* Zeros and subnormals are common in 8 bits and are counted on the way; the few groups with a value that is
 * not finite are done one by one. */
#define SCAN_8(name, first_normal, end)                                                                   \
    static void scan_##name(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)    \
    {                                                                                                     \
        const uint8_t *src = values;                                                                      \
        struct lanes v = lanes_load(lanes);                                                               \
        struct range8 r = { _mm512_set1_epi8(INT8_MAX), _mm512_set1_epi8(INT8_MIN), _mm512_set1_epi8(-1), \
                            _mm512_setzero_si512() };                                                     \
        uint64_t zero = 0, small = 0;                                                                     \
        size_t i = 0;                                                                                     \
        for (; i + 64 <= n; i += 64) {                                                                    \
            __m512i raw = _mm512_loadu_si512(src + i), m = _mm512_and_si512(raw, _mm512_set1_epi8(0x7f)); \
            if (__builtin_expect(_mm512_cmpge_epu8_mask(m, _mm512_set1_epi8(end)) != 0, 0)) {             \
                lanes_store(&v, lanes);                                                                   \
                for (size_t k = i; k < i + 64; k++)                                                       \
                    scan_one(lanes, SCAN_LANE_F8(k), scan_##name##_bits(src[k]), smallest);               \
                v = lanes_load(lanes);                                                                    \
                continue;                                                                                 \
            }                                                                                             \
            zero += count8(_mm512_testn_epi8_mask(m, m));                                                 \
            small += count8(_mm512_cmplt_epu8_mask(m, _mm512_set1_epi8(first_normal)));                   \
            range8_take(&r, raw);                                                                         \
            take_8(&v, raw, expand_##name);                                                               \
        }                                                                                                 \
        lanes_store(&v, lanes);                                                                           \
        range8_join(&r, scan_##name##_bits, lanes);                                                       \
        lanes->zero += zero;                                                                              \
        lanes->subnormal += small - zero;                                                                 \
        for (; i < n; i++)                                                                                \
            scan_one(lanes, SCAN_LANE_F8(i), scan_##name##_bits(src[i]), smallest);                       \
    }
SCAN_8(e4m3, SCAN_E4M3_LEAST, SCAN_E4M3_END)
SCAN_8(e5m2, SCAN_E5M2_LEAST, SCAN_E5M2_END)

static void scan_f64_avx512(const void *values, size_t n, struct scan_wide_lanes *lanes)
{
    scan_wide_values(values, n, lanes);
}

void scan_ops_init_avx512(struct scan_ops *ops)
{
    *ops = (struct scan_ops){ scan_f32, scan_bf16, scan_f16, scan_e4m3, scan_e5m2, scan_f64_avx512 };
}
#endif
