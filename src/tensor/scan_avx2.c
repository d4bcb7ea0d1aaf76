/* SPDX-License-Identifier: Apache-2.0
 * Scanning with AVX2 and F16C: a register holds eight lanes. */
#include "tensor/scan_scalar.h"

#ifdef __x86_64__
#include <immintrin.h>

struct lanes {
    __m256 min[2], max[2], sum[4], squares[4];
    uint64_t zero, subnormal, nan, inf;
};

static inline struct lanes lanes_load(const struct scan_lanes *l)
{
    struct lanes v = { .zero = l->zero, .subnormal = l->subnormal, .nan = l->nan, .inf = l->inf };
    for (int h = 0; h < 2; h++) {
        v.min[h] = _mm256_loadu_ps(l->min + 8 * h);
        v.max[h] = _mm256_loadu_ps(l->max + 8 * h);
    }
    for (int h = 0; h < 4; h++) {
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
    }
    for (int h = 0; h < 4; h++) {
        _mm256_storeu_ps(l->sum + 8 * h, v->sum[h]);
        _mm256_storeu_ps(l->squares + 8 * h, v->squares[h]);
    }
    l->zero = v->zero, l->subnormal = v->subnormal, l->nan = v->nan, l->inf = v->inf;
}

static inline __m256i magnitude(__m256 x)
{
    return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(SCAN_MAGNITUDE));
}

/* Zero, subnormal, infinite or NaN: what has to be counted.  (There is no unsigned comparison; the larger of
 * the two being the left one is the same.) */
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

/* h: which quarter of the lanes. */
static inline void take_and_count(struct lanes *v, int h, __m256 x, __m256i smallest)
{
    int half = h % 2;
    __m256i m = magnitude(x), inf = _mm256_set1_epi32(SCAN_INF_BITS);
    __m256i zero = _mm256_cmpeq_epi32(m, _mm256_setzero_si256()), small = _mm256_cmpgt_epi32(smallest, m);
    __m256 finite = _mm256_castsi256_ps(_mm256_cmpgt_epi32(inf, m));
    v->min[half] = _mm256_blendv_ps(v->min[half], _mm256_min_ps(x, v->min[half]), finite);
    v->max[half] = _mm256_blendv_ps(v->max[half], _mm256_max_ps(x, v->max[half]), finite);
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

static void scan_f32(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)
{
    const f32_any *src = values;
    struct lanes v = lanes_load(lanes);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256 x[4];
        for (int k = 0; k < 4; k++)
            x[k] = _mm256_loadu_ps((const void *)(src + i + 8 * k));
        take_four(&v, x, smallest);
    }
    lanes_store(&v, lanes);
    for (; i < n; i++)
        scan_one(lanes, SCAN_LANE_F32(i), scalar_bits(src + i), smallest);
}

/* Numbers of 16 bits are looked at as whole numbers, 16 at a time, and widened only for the sums. */
struct range16 {
    __m256i min, max; /* keys, which are ordered as their numbers are */
};

static inline __m256i key16(__m256i raw)
{
    return _mm256_xor_si256(raw, _mm256_and_si256(_mm256_srai_epi16(raw, 15), _mm256_set1_epi16(0x7fff)));
}

static inline __m256i special16(__m256i raw, int least, int inf)
{
    __m256i m = _mm256_and_si256(raw, _mm256_set1_epi16(0x7fff));
    __m256i above = _mm256_sub_epi16(m, _mm256_set1_epi16((short)least));
    return _mm256_cmpeq_epi16(_mm256_max_epu16(above, _mm256_set1_epi16((short)(inf - least))), above);
}

static inline void take_sums(struct lanes *v, int h, __m256 x)
{
    v->sum[h] = _mm256_add_ps(v->sum[h], x);
    v->squares[h] = _mm256_add_ps(v->squares[h], _mm256_mul_ps(x, x));
}

/* x[0], x[1] and the quarter of the lanes that each goes to; raw is the k-th register of a group. */
static inline void widen_bf16(__m256i raw, int k, __m256 x[2], int h[2])
{
    x[0] = _mm256_castsi256_ps(_mm256_slli_epi32(raw, 16));
    x[1] = _mm256_castsi256_ps(_mm256_and_si256(raw, _mm256_set1_epi32((int)0xffff0000)));
    h[0] = k % 2, h[1] = 2 + k % 2;
}

static inline void widen_f16(__m256i raw, int k, __m256 x[2], int h[2])
{
    x[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(raw));
    x[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(raw, 1));
    h[0] = k % 2 * 2, h[1] = k % 2 * 2 + 1;
}

typedef void widen16(__m256i raw, int k, __m256 x[2], int h[2]);

static inline void take_raw(struct lanes *v, struct range16 *r, __m256i raw, int k, widen16 *widen)
{
    __m256i key = key16(raw);
    __m256 x[2];
    int h[2];
    widen(raw, k, x, h);
    r->min = _mm256_min_epi16(r->min, key);
    r->max = _mm256_max_epi16(r->max, key);
    take_sums(v, h[0], x[0]);
    take_sums(v, h[1], x[1]);
}

static inline void count_raw(struct lanes *v, __m256i raw, int k, uint32_t smallest, widen16 *widen)
{
    __m256i least = _mm256_set1_epi32((int)smallest);
    __m256 x[2];
    int h[2];
    widen(raw, k, x, h);
    take_and_count(v, h[0], x[0], least);
    take_and_count(v, h[1], x[1], least);
}

static void range16_join(const struct range16 *r, uint32_t (*widen_one)(uint16_t), struct scan_lanes *lanes)
{
    int16_t min[16], max[16];
    _mm256_storeu_si256((void *)min, r->min);
    _mm256_storeu_si256((void *)max, r->max);
    scan_join_keys(lanes, min, max, 16, widen_one);
}

static inline size_t scan_16(const u16_any *src, size_t n, int least, int inf, uint32_t smallest,
                             widen16 *widen, struct lanes *v, struct range16 *r)
{
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        __m256i raw[4], any = _mm256_setzero_si256();
        for (int k = 0; k < 4; k++) {
            raw[k] = _mm256_loadu_si256((const void *)(src + i + 16 * k));
            any = _mm256_or_si256(any, special16(raw[k], least, inf));
        }
        if (__builtin_expect(_mm256_testz_si256(any, any), 1))
            for (int k = 0; k < 4; k++)
                take_raw(v, r, raw[k], k, widen);
        else
            for (int k = 0; k < 4; k++)
                count_raw(v, raw[k], k, smallest, widen);
    }
    return i;
}

static inline struct range16 range16_none(void)
{
    return (struct range16){ _mm256_set1_epi16(INT16_MAX), _mm256_set1_epi16(INT16_MIN) };
}

SCAN_16(bf16, SCAN_BF16_LEAST, SCAN_BF16_INF, SCAN_LANE_BF16)
SCAN_16(f16, SCAN_F16_LEAST, SCAN_F16_INF, SCAN_LANE_F16)

/* Numbers of 8 bits: compared and counted as bytes, 64 at a time, widened through f16 for the sums. */
struct range8 {
    __m256i min, max, least, most;
};

static inline void range8_take(struct range8 *r, __m256i raw)
{
    r->min = _mm256_min_epi8(r->min, raw);
    r->max = _mm256_max_epi8(r->max, raw);
    r->least = _mm256_min_epu8(r->least, raw);
    r->most = _mm256_max_epu8(r->most, raw);
}

static void range8_join(const struct range8 *r, uint32_t (*widen_one)(uint8_t), struct scan_lanes *lanes)
{
    int8_t min[32], max[32];
    uint8_t least[32], most[32];
    _mm256_storeu_si256((void *)min, r->min);
    _mm256_storeu_si256((void *)max, r->max);
    _mm256_storeu_si256((void *)least, r->least);
    _mm256_storeu_si256((void *)most, r->most);
    struct scan_range8 all = scan_range8_of(min, max, least, most, 32);
    scan_join_range8(lanes, &all, widen_one);
}

/* The numbers at even and at odd places, as f16. */
typedef void expand8(__m256i raw, __m256i f16[2]);

static inline void expand_e5m2(__m256i raw, __m256i f16[2])
{
    f16[0] = _mm256_slli_epi16(raw, 8);
    f16[1] = _mm256_and_si256(raw, _mm256_set1_epi16((short)0xff00));
}

static inline __m256i shift_e4m3(__m256i upper)
{
    __m256i magnitude = _mm256_and_si256(_mm256_srli_epi16(upper, 1), _mm256_set1_epi16(0x3f80));
    return _mm256_or_si256(magnitude, _mm256_and_si256(upper, _mm256_set1_epi16((short)0x8000)));
}

static inline void expand_e4m3(__m256i raw, __m256i f16[2])
{
    f16[0] = shift_e4m3(_mm256_slli_epi16(raw, 8));
    f16[1] = shift_e4m3(raw);
}

/* raw is the k-th register of a pair. */
static inline void take_8(struct lanes *v, __m256i raw, int k, expand8 *expand)
{
    __m256i f16[2];
    expand(raw, f16);
    for (int i = 0; i < 2; i++) {
        take_sums(v, 2 * k, _mm256_cvtph_ps(_mm256_castsi256_si128(f16[i])));
        take_sums(v, 2 * k + 1, _mm256_cvtph_ps(_mm256_extracti128_si256(f16[i], 1)));
    }
}

static inline uint64_t count8(__m256i mask)
{
    return (uint64_t)_mm_popcnt_u32((unsigned)_mm256_movemask_epi8(mask));
}

/* Zeros and subnormals are common in 8 bits and are counted on the way; the few groups with a value that is
 * not finite are done one by one. */
#define SCAN_8(name, first_normal, end)                                                                   \
    static void scan_##name(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes)    \
    {                                                                                                     \
        const uint8_t *src = values;                                                                      \
        struct lanes v = lanes_load(lanes);                                                               \
        struct range8 r = { _mm256_set1_epi8(INT8_MAX), _mm256_set1_epi8(INT8_MIN), _mm256_set1_epi8(-1), \
                            _mm256_setzero_si256() };                                                     \
        size_t i = 0;                                                                                     \
        for (; i + 64 <= n; i += 64) {                                                                    \
            __m256i raw[2], m[2];                                                                         \
            for (int k = 0; k < 2; k++) {                                                                 \
                raw[k] = _mm256_loadu_si256((const void *)(src + i + 32 * k));                            \
                m[k] = _mm256_and_si256(raw[k], _mm256_set1_epi8(0x7f));                                  \
            }                                                                                             \
            __m256i above = _mm256_cmpgt_epi8(_mm256_max_epu8(m[0], m[1]), _mm256_set1_epi8((end)-1));    \
            if (__builtin_expect(!_mm256_testz_si256(above, above), 0)) {                                 \
                lanes_store(&v, lanes);                                                                   \
                for (size_t k = i; k < i + 64; k++)                                                       \
                    scan_one(lanes, SCAN_LANE_F8(k), scan_##name##_bits(src[k]), smallest);               \
                v = lanes_load(lanes);                                                                    \
                continue;                                                                                 \
            }                                                                                             \
            for (int k = 0; k < 2; k++) {                                                                 \
                uint64_t zero = count8(_mm256_cmpeq_epi8(m[k], _mm256_setzero_si256()));                  \
                v.zero += zero;                                                                           \
                v.subnormal += count8(_mm256_cmpgt_epi8(_mm256_set1_epi8(first_normal), m[k])) - zero;    \
                range8_take(&r, raw[k]);                                                                  \
                take_8(&v, raw[k], k, expand_##name);                                                     \
            }                                                                                             \
        }                                                                                                 \
        lanes_store(&v, lanes);                                                                           \
        range8_join(&r, scan_##name##_bits, lanes);                                                       \
        for (; i < n; i++)                                                                                \
            scan_one(lanes, SCAN_LANE_F8(i), scan_##name##_bits(src[i]), smallest);                       \
    }
SCAN_8(e4m3, SCAN_E4M3_LEAST, SCAN_E4M3_END)
SCAN_8(e5m2, SCAN_E5M2_LEAST, SCAN_E5M2_END)

static void scan_f64_avx2(const void *values, size_t n, struct scan_wide_lanes *lanes)
{
    scan_wide_values(values, n, lanes);
}

void scan_ops_init_avx2(struct scan_ops *ops)
{
    *ops = (struct scan_ops){ scan_f32, scan_bf16, scan_f16, scan_e4m3, scan_e5m2, scan_f64_avx2 };
}
#endif
