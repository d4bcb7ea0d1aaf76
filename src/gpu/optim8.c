/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/optim8.h"

#include <math.h>

enum { DECADES = 7, CODES = 256 };

/* The positive values in rising order without the 1: the middles of equal bins between 0.1 and 1, times 10^-6
 * … 1. Returns how many. */
static int positive_values(int bins_below, float *out)
{
    int n = 0;
    for (int decade = 0; decade < DECADES; decade++) {
        int bins = bins_below << decade;
        for (int i = 0; i < bins; i++)
            out[n++] = (float)(pow(10, decade - DECADES + 1) * (0.1 + 0.9 * (i + 0.5) / bins));
    }
    return n;
}

static void put_between(const float *values, float *out)
{
    for (int i = 0; i < CODES; i++)
        out[i] = i + 1 < CODES ? (values[i] + values[i + 1]) / 2 : INFINITY;
}

void optim8_tables(float out[OPTIM8_TABLES])
{
    float *m = out, *v = out + 2 * CODES;
    int n = positive_values(1, m + OPTIM8_ZERO_M + 1);
    m[OPTIM8_ZERO_M] = 0;
    for (int i = 1; i <= n; i++)
        m[OPTIM8_ZERO_M - i] = -m[OPTIM8_ZERO_M + i];
    m[CODES - 1] = v[CODES - 1] = 1;
    v[OPTIM8_ZERO_V] = 0;
    positive_values(2, v + 1);
    put_between(m, m + CODES);
    put_between(v, v + CODES);
}
