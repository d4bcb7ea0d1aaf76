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

/* x[0], x[1] and the half of the lanes that each goes to; raw is the k-th register of a group. */
static inline void widen_bf16(__m256i raw, int k, __m256 x[2], int h[2])
{
    x[0] = _mm256_castsi256_ps(_mm256_slli_epi32(raw, 16));
    x[1] = _mm256_castsi256_ps(_mm256_and_si256(raw, _mm256_set1_epi32((int)0xffff0000)));
    h[0] = h[1] = k % 2;
}

static inline void widen_f16(__m256i raw, int k, __m256 x[2], int h[2])
{
    (void)k;
    x[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(raw));
    x[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(raw, 1));
    h[0] = 0, h[1] = 1;
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
    for (int i = 1; i < 16; i++) {
        min[0] = min[i] < min[0] ? min[i] : min[0];
        max[0] = max[i] > max[0] ? max[i] : max[0];
    }
    scan_join_keys(lanes, min[0], max[0], widen_one);
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

#define SCAN(name, least, inf, lane)                                                                   \
    static void scan_##name(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes) \
    {                                                                                                  \
        struct lanes v = lanes_load(lanes);                                                            \
        struct range16 r = { _mm256_set1_epi16(INT16_MAX), _mm256_set1_epi16(INT16_MIN) };             \
        size_t i = scan_16(values, n, least, inf, smallest, widen_##name, &v, &r);                     \
        lanes_store(&v, lanes);                                                                        \
        range16_join(&r, scan_##name##_bits, lanes);                                                   \
        for (; i < n; i++)                                                                             \
            scan_one(lanes, lane(i), scan_##name##_bits(((const u16_any *)values)[i]), smallest);      \
    }
SCAN(bf16, SCAN_BF16_LEAST, SCAN_BF16_INF, SCAN_LANE_BF16)
SCAN(f16, SCAN_F16_LEAST, SCAN_F16_INF, SCAN_LANE_F16)

void scan_ops_init_avx2(struct scan_ops *ops)
{
    *ops = (struct scan_ops){ scan_f32, scan_bf16, scan_f16 };
}
#endif
