/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IGNORED = 2, SLOW_TIMES = 10, END_TIMES = 30, SLOW_SHARE = 6, END_SHARE = 3 };

void step_times_add(struct step_times *p, double seconds)
{
    if (p->n >= IGNORED)
        p->took[(p->n - IGNORED) % STEP_TIMES_MOST] = seconds;
    p->n++;
}

void step_times_reset(struct step_times *p)
{
    p->n = 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double step_times_median(const struct step_times *p)
{
    double sorted[STEP_TIMES_MOST];
    size_t n = p->n < IGNORED ? 0 : p->n - IGNORED;
    n = n < STEP_TIMES_MOST ? n : STEP_TIMES_MOST;
    if (n < STEP_TIMES_ENOUGH)
        return 0;
    memcpy(sorted, p->took, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare);
    return sorted[n / 2];
}

/* 10 times the median, and at least 10 s where hang_after_s is 60. */
double step_times_slow_s(const struct step_times *p, double work, int hang_after_s)
{
    double median = step_times_median(p) * work;
    return hang_after_s && median > 0 ? fmax(SLOW_TIMES * median, (double)hang_after_s / SLOW_SHARE) : 0;
}

/* A device that does not answer is detected earlier; this is for one that answers but makes no progress. */
double step_times_end_s(const struct step_times *p, double work, int hang_after_s)
{
    double median = step_times_median(p) * work;
    return hang_after_s && median > 0 ? fmax(END_TIMES * median, (double)hang_after_s * END_SHARE) : 0;
}
