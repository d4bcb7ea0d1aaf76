/* SPDX-License-Identifier: Apache-2.0
 * One value at a time: the definition of a scan, and the tail of every faster version. */
#ifndef CAIRN_TENSOR_SCAN_SCALAR_H
#define CAIRN_TENSOR_SCAN_SCALAR_H

#include "tensor/dtype_scalar.h"
#include "tensor/scan.h"

enum { SCAN_INF_BITS = 0x7f800000, SCAN_MAGNITUDE = 0x7fffffff };

/* To which lane value i is added.  Pairs of bf16 are one 32-bit word, which is two values of one lane. */
#define SCAN_LANE_F32(i) ((i) % SCAN_LANES)
#define SCAN_LANE_F16(i) ((i) % SCAN_LANES)
#define SCAN_LANE_BF16(i) ((i) / 2 % SCAN_LANES)

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

/* A key is a 16-bit number with the magnitude of negative ones inverted, so that keys compare as the numbers do.
 * min > max: there was none. */
static inline void scan_join_keys(struct scan_lanes *l, int16_t min, int16_t max, uint32_t (*bits)(uint16_t))
{
    if (min > max)
        return;
    float low = scalar_f32(bits((uint16_t)(min < 0 ? min ^ 0x7fff : min)));
    float high = scalar_f32(bits((uint16_t)(max < 0 ? max ^ 0x7fff : max)));
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

#endif
