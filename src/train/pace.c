/* SPDX-License-Identifier: Apache-2.0 */
#include "train/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEFT_OUT = 2, SLOW_TIMES = 10, END_TIMES = 30, SLOW_SHARE = 6, END_SHARE = 3 };

void pace_add(struct pace *p, double seconds)
{
    if (p->n >= LEFT_OUT)
        p->took[(p->n - LEFT_OUT) % PACE_KEPT] = seconds;
    p->n++;
}

void pace_forget(struct pace *p)
{
    p->n = 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double pace_median(const struct pace *p)
{
    double sorted[PACE_KEPT];
    size_t n = p->n < LEFT_OUT ? 0 : p->n - LEFT_OUT;
    n = n < PACE_KEPT ? n : PACE_KEPT;
    if (n < PACE_ENOUGH)
        return 0;
    memcpy(sorted, p->took, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare);
    return sorted[n / 2];
}

/* 10 times the median, and at least 10 s where the device may be silent for 60. */
double pace_slow_s(const struct pace *p, int hang_after_s)
{
    double median = pace_median(p);
    return hang_after_s && median > 0 ? fmax(SLOW_TIMES * median, (double)hang_after_s / SLOW_SHARE) : 0;
}

/* A device that is silent was found out long before; this is for one that answers, and gets nowhere. */
double pace_end_s(const struct pace *p, int hang_after_s)
{
    double median = pace_median(p);
    return hang_after_s && median > 0 ? fmax(END_TIMES * median, (double)hang_after_s * END_SHARE) : 0;
}
