/* SPDX-License-Identifier: Apache-2.0
 * Converts one value at a time: the reference that every faster version must match bit for bit.
 *
 * All narrow formats are a sign, an exponent and a mantissa, so one function rounds to any of them; widening
 * is exact and done by hand for each.  Numbers travel as the bits of an f32. */
#ifndef CAIRN_TENSOR_DTYPE_SCALAR_H
#define CAIRN_TENSOR_DTYPE_SCALAR_H

#include <stdbool.h>
#include "base/splitmix.h"
#include <stdint.h>
#include <string.h>

/* Data in files has no alignment. */
typedef uint16_t u16_any __attribute__((aligned(1), may_alias));
typedef float f32_any __attribute__((aligned(1), may_alias));

struct scalar_format {
    int exponent_bits, mantissa_bits, bias;
    uint32_t max_code; /* of the largest finite magnitude */
    uint32_t overflow; /* what lies beyond it: infinity, or NaN where there is none */
    uint32_t nan;      /* quiet, payload 0 */
    bool payload;      /* NaN keeps the upper bits of its payload */
};

static const struct scalar_format scalar_bf16 = { 8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, true };
static const struct scalar_format scalar_f16 = { 5, 10, 15, 0x7bff, 0x7c00, 0x7e00, true };
static const struct scalar_format scalar_e4m3 = { 4, 3, 7, 0x7e, 0x7f, 0x7f, false };
static const struct scalar_format scalar_e5m2 = { 5, 2, 15, 0x7b, 0x7c, 0x7e, true };

static inline float scalar_f32(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static inline uint32_t scalar_bits(const f32_any *f)
{
    uint32_t bits;
    memcpy(&bits, f, sizeof(bits));
    return bits;
}

/* Rounding adds a number below one unit and cuts.  Half a unit, corrected for ties, is nearest-even; a random
 * one is stochastic. */
#define SCALAR_HALF UINT64_MAX

static inline uint32_t scalar_round(uint32_t mantissa, int drop, uint64_t random)
{
    if (drop > 62) /* far below half of the smallest number */
        return 0;
    uint64_t m = mantissa, unit = (uint64_t)1 << drop;
    uint64_t add =
        random == SCALAR_HALF ? (unit >> 1) - (drop > 0) + (m >> drop & (drop > 0)) : random & (unit - 1);
    return (uint32_t)((m + add) >> drop);
}

static inline uint32_t scalar_narrow(const struct scalar_format *f, uint32_t bits, uint64_t random,
                                     bool saturate)
{
    int width = f->exponent_bits + f->mantissa_bits;
    uint32_t sign = (bits >> 31) << width, abs = bits & 0x7fffffff;
    if (abs > 0x7f800000)
        return sign | f->nan | (f->payload ? (abs & 0x7fffff) >> (23 - f->mantissa_bits) : 0);
    if (abs == 0x7f800000)
        return sign | (saturate ? f->max_code : f->overflow);
    /* With the hidden one made visible, the number is mantissa * 2^(exponent - 23).  A subnormal result has
     * the smallest exponent and a mantissa that lost more bits. */
    int exponent = (int)(abs >> 23) - 127;
    uint32_t mantissa = abs & 0x7fffff;
    if (abs >> 23)
        mantissa |= 0x800000;
    else
        exponent = -126;
    int lowest = 1 - f->bias, drop = 23 - f->mantissa_bits;
    if (exponent < lowest)
        drop += lowest - exponent;
    uint32_t kept = scalar_round(mantissa, drop, random);
    /* Carrying into the exponent is what rounding up to the next power of two means. */
    uint32_t code =
        exponent < lowest ? kept : kept + ((uint32_t)(exponent + f->bias - 1) << f->mantissa_bits);
    if (code > f->max_code)
        code = saturate ? f->max_code : f->overflow;
    return sign | code;
}

static inline uint32_t scalar_from_bf16(uint16_t v)
{
    return (uint32_t)v << 16;
}

/* Exponent and mantissa of a small format in f32's places, then the bias corrected; a subnormal is
 * normalised. */
static inline uint32_t scalar_widen(uint32_t sign, uint32_t exponent, uint32_t mantissa, int mantissa_bits,
                                    int bias)
{
    if (exponent == 0) {
        if (mantissa == 0)
            return sign;
        exponent = 1;
        while (!(mantissa >> mantissa_bits)) {
            mantissa <<= 1;
            bias++;
        }
        mantissa &= (1u << mantissa_bits) - 1;
    }
    return sign | ((exponent + 127 - (uint32_t)bias) << 23) | (mantissa << (23 - mantissa_bits));
}

static inline uint32_t scalar_from_f16(uint16_t v)
{
    uint32_t sign = (uint32_t)(v >> 15) << 31, exponent = v >> 10 & 31, mantissa = v & 0x3ff;
    if (exponent == 31)
        return sign | 0x7f800000 | (mantissa ? 0x400000 | mantissa << 13 : 0);
    return scalar_widen(sign, exponent, mantissa, 10, 15);
}

static inline uint32_t scalar_from_e5m2(uint8_t v)
{
    uint32_t sign = (uint32_t)(v >> 7) << 31, exponent = v >> 2 & 31, mantissa = v & 3;
    if (exponent == 31)
        return sign | 0x7f800000 | (mantissa ? 0x400000 | mantissa << 21 : 0);
    return scalar_widen(sign, exponent, mantissa, 2, 15);
}

static inline uint32_t scalar_from_e4m3(uint8_t v)
{
    uint32_t sign = (uint32_t)(v >> 7) << 31, exponent = v >> 3 & 15, mantissa = v & 7;
    if ((v & 0x7f) == 0x7f)
        return sign | 0x7fc00000;
    return scalar_widen(sign, exponent, mantissa, 3, 7);
}

/* Infinity to the largest finite f32; NaN stays. */
static inline uint32_t scalar_clamp(uint32_t bits)
{
    return (bits & 0x7fffffff) == 0x7f800000 ? bits - 1 : bits;
}

/* f64 to f32 with rounding to odd: what was cut leaves a mark in the last bit, so that rounding once more to
 * a narrower format gives what rounding once from f64 would.  Overflow goes to the largest finite value,
 * which is odd and rounds on to infinity; infinity and NaN are themselves. */
static inline uint32_t scalar_f64_to_odd(double v)
{
    uint64_t d;
    memcpy(&d, &v, sizeof(d));
    uint32_t sign = (uint32_t)(d >> 63) << 31;
    uint64_t abs = d & 0x7fffffffffffffff;
    uint64_t mantissa = abs & 0xfffffffffffff;
    int exponent = (int)(abs >> 52) - 1023;
    if (abs > 0x7ff0000000000000)
        return sign | 0x7fc00000 | (uint32_t)(mantissa >> 29);
    if (abs == 0x7ff0000000000000)
        return sign | 0x7f800000;
    if (exponent > 127)
        return sign | 0x7f7fffff;
    int drop = 29;
    uint32_t top = (uint32_t)(exponent + 127) << 23;
    if (exponent < -126) {
        drop += -126 - exponent;
        mantissa |= (uint64_t)1 << 52;
        top = 0;
    }
    if (drop > 60)
        return sign | (abs != 0);
    uint64_t lost = mantissa & (((uint64_t)1 << drop) - 1);
    return sign | (top + (uint32_t)(mantissa >> drop)) | (lost != 0);
}

/* splitmix64 of (seed, counter): cheap, and good enough to be fair.  Never the mark SCALAR_HALF. */
static inline uint64_t scalar_random(uint64_t seed, uint64_t counter)
{
    return splitmix_mix(seed + (counter + 1) * SPLITMIX_STEP) >> 1;
}

#endif
