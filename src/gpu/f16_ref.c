/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/f16_ref.h"

#include <math.h>
#include <string.h>

/* Checks convert millions: ldexp() and frexp() would be most of their time. */
static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof(power));
    return power;
}

static uint16_t to_half(float f, int mantissa, int least_exponent)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint16_t infinity = (uint16_t)(0x7fff & ~((1 << mantissa) - 1));
    if (isnan(f))
        return (uint16_t)(sign | infinity | 1 << (mantissa - 1));
    if (isinf(f) || f == 0)
        return f == 0 ? sign : sign | infinity;
    int e = (int)(bits >> 23 & 0xff) - 127; /* of 2^e <= |f|; what is subnormal as f32 has -127 */
    e = e < least_exponent ? least_exponent : e;
    double steps = fabs((double)f) * power_of_two(mantissa - e); /* of the spacing there */
    steps = steps + 0x1p52 - 0x1p52;                             /* ties to even */
    double code = (e - least_exponent) * (1 << mantissa) + steps;
    return (uint16_t)(sign | (code > infinity ? infinity : (uint16_t)code));
}

static float from_half(uint16_t h, int mantissa, int least_exponent)
{
    int exponent = (h & 0x7fff) >> mantissa, top = 0x7fff >> mantissa, part = h & ((1 << mantissa) - 1);
    double v = exponent == top ? (part ? (double)NAN : (double)INFINITY)
               : exponent ? (part + (1 << mantissa)) * power_of_two(exponent - 1 + least_exponent - mantissa)
                          : part * power_of_two(least_exponent - mantissa);
    return (float)(h & 0x8000 ? -v : v);
}

uint16_t f16_from_float(enum gpu_storage s, float f)
{
    return s == GPU_BF16 ? to_half(f, 7, -126) : to_half(f, 10, -14);
}

float f16_to_float(enum gpu_storage s, uint16_t h)
{
    return s == GPU_BF16 ? from_half(h, 7, -126) : from_half(h, 10, -14);
}
