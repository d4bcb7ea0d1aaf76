/* SPDX-License-Identifier: Apache-2.0
 * Scans one value at a time: the reference, and the tail of every faster version. */
#ifndef CAIRN_TENSOR_SCAN_SCALAR_H
#define CAIRN_TENSOR_SCAN_SCALAR_H

#include "tensor/dtype_scalar.h"
#include "tensor/scan.h"

typedef uint64_t u64_any __attribute__((aligned(1), may_alias));

enum { SCAN_INF_BITS = 0x7f800000, SCAN_MAGNITUDE = 0x7fffffff };
#define SCAN_E4M3_SCALE 0x1p-8f

static inline double scan_f64(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* To which lane value i is added.  A pair of bf16 is one 32-bit word, whose halves have lanes of their own; a
 * pair of 8-bit numbers is one 16-bit word, and both go to its lane. */
#define SCAN_LANE_F32(i) ((i) % 16)
#define SCAN_LANE_F16(i) ((i) % 32)
#define SCAN_LANE_BF16(i) ((i) % 2 * 16 + (i) / 2 % 16)
#define SCAN_LANE_F8(i) ((i) / 2 % 32)

/* Codes of 16-bit numbers.  From LEAST on they are normal, and so is their square in f32. */
enum { SCAN_BF16_LEAST = 64 << 7, SCAN_BF16_INF = 0x7f80, SCAN_F16_LEAST = 0x0400, SCAN_F16_INF = 0x7c00 };

static inline uint32_t scan_bf16_bits(uint16_t code)
{
    return scalar_from_bf16(code);
}

static inline uint32_t scan_f16_bits(uint16_t code)
{
    return scalar_from_f16(code);
}

/* An 8-bit number has the bits of an f16: e5m2 is its upper half, and e4m3, shifted into place, is 1/256 of
 * what it stands for. */
static inline uint32_t scan_e5m2_bits(uint8_t code)
{
    return scalar_from_e5m2(code);
}

static inline uint32_t scan_e4m3_bits(uint8_t code)
{
    float scaled = scalar_f32(scalar_from_e4m3(code)) * SCAN_E4M3_SCALE;
    return scalar_bits(&scaled);
}

/* Codes of 8-bit numbers: the smallest normal one, and the first that is not finite. */
enum { SCAN_E4M3_LEAST = 0x08, SCAN_E4M3_END = 0x7f, SCAN_E5M2_LEAST = 0x04, SCAN_E5M2_END = 0x7c };

/* A key is a 16-bit number with the magnitude of negative ones inverted, so that keys compare as the numbers
 * do. Takes the ranges of n lanes; min > max: there was none. */
static inline void scan_join_keys(struct scan_lanes *l, const int16_t *mins, const int16_t *maxs, size_t n,
                                  uint32_t (*bits)(uint16_t))
{
    int16_t min = INT16_MAX, max = INT16_MIN;
    for (size_t i = 0; i < n; i++) {
        min = mins[i] < min ? mins[i] : min;
        max = maxs[i] > max ? maxs[i] : max;
    }
    if (min > max)
        return;
    float low = scalar_f32(bits((uint16_t)(min < 0 ? min ^ 0x7fff : min)));
    float high = scalar_f32(bits((uint16_t)(max < 0 ? max ^ 0x7fff : max)));
    l->min[0] = low < l->min[0] ? low : l->min[0];
    l->max[0] = high > l->max[0] ? high : l->max[0];
}

/* Of 8-bit numbers, compared as bytes with and without a sign.  Bytes that are negative grow with the
 * magnitude, which is why each end of the range can come from either comparison. */
struct scan_range8 {
    int8_t min, max;
    uint8_t least, most; /* least > most: there was none */
};

/* The range of the ranges of n lanes; with a constant n the compiler makes vectors of it. */
static inline struct scan_range8 scan_range8_of(const int8_t *min, const int8_t *max, const uint8_t *least,
                                                const uint8_t *most, size_t n)
{
    struct scan_range8 r = { INT8_MAX, INT8_MIN, UINT8_MAX, 0 };
    for (size_t i = 0; i < n; i++) {
        r.min = min[i] < r.min ? min[i] : r.min;
        r.max = max[i] > r.max ? max[i] : r.max;
        r.least = least[i] < r.least ? least[i] : r.least;
        r.most = most[i] > r.most ? most[i] : r.most;
    }
    return r;
}

static inline void scan_join_range8(struct scan_lanes *l, const struct scan_range8 *r,
                                    uint32_t (*bits)(uint8_t))
{
    if (r->least > r->most)
        return;
    float low = scalar_f32(bits(r->most >= 0x80 ? r->most : r->least));
    float high = scalar_f32(bits((uint8_t)(r->max >= 0 ? r->max : r->min)));
    l->min[0] = low < l->min[0] ? low : l->min[0];
    l->max[0] = high > l->max[0] ? high : l->max[0];
}

static inline void scan_one(struct scan_lanes *l, size_t lane, uint32_t bits, uint32_t smallest)
{
    uint32_t magnitude = bits & SCAN_MAGNITUDE;
    float v = scalar_f32(bits);
    l->zero += magnitude == 0;
    l->subnormal += magnitude != 0 && magnitude < smallest;
    l->inf += magnitude == SCAN_INF_BITS;
    l->nan += magnitude > SCAN_INF_BITS;
    if (magnitude >= SCAN_INF_BITS)
        return;
    l->min[lane] = v < l->min[lane] ? v : l->min[lane];
    l->max[lane] = v > l->max[lane] ? v : l->max[lane];
    l->sum[lane] += v;
    l->squares[lane] += v * v;
}

/* The scan of one 16-bit type, on the vectors of the file that includes this. */
#define SCAN_16(name, least, inf, lane)                                                                \
    static void scan_##name(const void *values, size_t n, uint32_t smallest, struct scan_lanes *lanes) \
    {                                                                                                  \
        struct lanes v = lanes_load(lanes);                                                            \
        struct range16 r = range16_none();                                                             \
        size_t i = scan_16(values, n, least, inf, smallest, widen_##name, &v, &r);                     \
        lanes_store(&v, lanes);                                                                        \
        range16_join(&r, scan_##name##_bits, lanes);                                                   \
        for (; i < n; i++)                                                                             \
            scan_one(lanes, lane(i), scan_##name##_bits(((const u16_any *)values)[i]), smallest);      \
    }

/* One f64.  Without a branch, so that the compiler makes vectors of neighbours: what is not finite adds
 * zero. */
static inline void scan_one_wide(struct scan_wide_lanes *l, size_t lane, uint64_t bits)
{
    const int64_t inf = 0x7ff0000000000000, least = 0x0010000000000000;
    int64_t magnitude = (int64_t)(bits & INT64_MAX), finite = -(int64_t)(magnitude < inf);
    double v = scan_f64(bits & (uint64_t)finite);
    double low = scan_f64((bits & (uint64_t)finite) | ((uint64_t)inf & ~(uint64_t)finite));
    double high = scan_f64((bits & (uint64_t)finite) | (0xfff0000000000000 & ~(uint64_t)finite));
    l->zero[lane] += magnitude == 0;
    l->small[lane] += magnitude < least;
    l->nan[lane] += magnitude > inf;
    l->special[lane] += magnitude >= inf;
    l->min[lane] = low < l->min[lane] ? low : l->min[lane];
    l->max[lane] = high > l->max[lane] ? high : l->max[lane];
    l->sum[lane] += v;
    l->squares[lane] += v * v;
}

/* Each set of instructions compiles this for itself. */
static inline void scan_wide_values(const void *values, size_t n, struct scan_wide_lanes *lanes)
{
    const u64_any *src = values;
    struct scan_wide_lanes l = *lanes;
    size_t i = 0;
    for (; i + SCAN_WIDE_LANES <= n; i += SCAN_WIDE_LANES)
        for (size_t k = 0; k < SCAN_WIDE_LANES; k++)
            scan_one_wide(&l, k, src[i + k]);
    for (; i < n; i++)
        scan_one_wide(&l, i % SCAN_WIDE_LANES, src[i]);
    *lanes = l;
}

#endif
