/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/half.h"

#include <math.h>
#include <string.h>

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
    int e;
    frexp(fabs((double)f), &e); /* |f| = m 2^e with m in [0.5, 1) */
    e = e - 1 < least_exponent ? least_exponent : e - 1;
    double steps = nearbyint(ldexp(fabs((double)f), mantissa - e)); /* of the spacing there; ties to even */
    double code = (e - least_exponent) * ldexp(1, mantissa) + steps;
    return (uint16_t)(sign | (code > infinity ? infinity : (uint16_t)code));
}

static float from_half(uint16_t h, int mantissa, int least_exponent)
{
    int exponent = (h & 0x7fff) >> mantissa, top = 0x7fff >> mantissa, part = h & ((1 << mantissa) - 1);
    double v = exponent == top ? (part ? (double)NAN : (double)INFINITY)
               : exponent      ? ldexp(part + (1 << mantissa), exponent - 1 + least_exponent - mantissa)
                               : ldexp(part, least_exponent - mantissa);
    return (float)(h & 0x8000 ? -v : v);
}

uint16_t half_from_float(enum gpu_storage s, float f)
{
    return s == GPU_BF16 ? to_half(f, 7, -126) : to_half(f, 10, -14);
}

float half_to_float(enum gpu_storage s, uint16_t h)
{
    return s == GPU_BF16 ? from_half(h, 7, -126) : from_half(h, 10, -14);
}
