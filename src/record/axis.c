/* SPDX-License-Identifier: Apache-2.0 */
#include "record/axis.h"

#include "base/cleanup.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

static const double air = 0.04; /* margin at each end, as a share of the range */
/* Limit of an axis, so that nothing computed from it overflows: ends, range, ratio. */
static const double most = DBL_MAX / 8, log_least = 1e-280, log_most = 1e280;

static double within(double v, double least, double top)
{
    return v < least ? least : v > top ? top : v;
}

struct axis axis_fit(double lo, double hi, bool is_log)
{
    is_log = is_log && lo > 0;
    if (is_log) {
        lo = within(lo, log_least, log_most);
        hi = within(hi, lo, log_most);
        double by = hi > lo ? exp((log(hi) - log(lo)) * air) : 1.1;
        return (struct axis){ lo / by, hi * by, true };
    }
    lo = within(lo, -most, most);
    hi = within(hi, -most, most);
    double wide = hi > lo ? (hi - lo) * air : fmax(fabs(lo) * 0.1, 1e-9);
    return (struct axis){ lo - wide, hi + wide, false };
}

double axis_place(const struct axis *a, double v)
{
    if (a->is_log)
        return v > 0 ? (log(v) - log(a->lo)) / (log(a->hi) - log(a->lo)) : -1;
    return (within(v, -2 * most, 2 * most) - a->lo) / (a->hi - a->lo);
}

/* 1, 2 or 5 times a power of ten, not below v. */
static double round_step(double v)
{
    double power = pow(10, floor(log10(v)));
    static const double nice[] = { 1, 2, 5, 10 };
    for (size_t i = 0; i < ARRAY_LEN(nice); i++)
        if (v <= nice[i] * power * (1 + 1e-9))
            return nice[i] * power;
    return 10 * power;
}

static size_t straight_ticks(const struct axis *a, int want, double *ticks)
{
    double step = round_step((a->hi - a->lo) / want);
    size_t n = 0;
    for (double k = ceil(a->lo / step - 1e-9); k * step <= a->hi + 1e-9 * step && n < AXIS_TICKS_MOST; k++)
        ticks[n++] = k == 0 ? 0 : k * step;
    return n;
}

static size_t log_ticks(const struct axis *a, int want, double *ticks)
{
    double decades = log10(a->hi) - log10(a->lo);
    double every = ceil(decades / want); /* powers of ten */
    size_t n = 0;
    for (double p = floor(log10(a->lo)); p <= log10(a->hi) && n + 3 <= AXIS_TICKS_MOST; p += every)
        for (int m = 1; m <= (3 * decades <= want ? 5 : 1); m += m == 1 ? 1 : 3) /* 1, 2, 5 */
            if (m * pow(10, p) >= a->lo && m * pow(10, p) <= a->hi)
                ticks[n++] = m * pow(10, p);
    return n;
}

/* Within a decade there are few powers of ten, so the ticks of a linear axis serve better. */
static bool is_wide(const struct axis *a)
{
    return a->is_log && a->hi >= 10 * a->lo;
}

size_t axis_ticks(const struct axis *a, int want, double ticks[AXIS_TICKS_MOST])
{
    return is_wide(a) ? log_ticks(a, want, ticks) : straight_ticks(a, want, ticks);
}

/* The value that decides the notation of all labels of an axis, except large ones of a wide axis. */
static double size_of_numbers(const struct axis *a, double v)
{
    if (is_wide(a))
        return a->lo < 1e-3 ? a->lo : fabs(v);
    return fmax(fabs(a->lo), fabs(a->hi));
}

const char *axis_label(const struct axis *a, double v, char *buf)
{
    static const struct {
        double from;
        const char *unit;
    } rows[] = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e4, "k" } };
    double size = size_of_numbers(a, v);
    for (size_t i = 0; i < ARRAY_LEN(rows) && size < 1e15 && v != 0; i++)
        if (size >= rows[i].from) {
            double unit = rows[i].from == 1e4 ? 1e3 : rows[i].from;
            snprintf(buf, AXIS_LABEL, "%.4g%s", v / unit, rows[i].unit);
            return buf;
        }
    if (v == 0 || (size >= 1e-3 && size < 1e15))
        return snprintf(buf, AXIS_LABEL, "%.4g", v), buf;
    int power = (int)floor(log10(fabs(v)) + 1e-9);
    snprintf(buf, AXIS_LABEL, "%.3ge%d", v / pow(10, power), power);
    return buf;
}
