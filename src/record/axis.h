/* SPDX-License-Identifier: Apache-2.0
 * One axis of a chart: a range, linear or logarithmic, with ticks at round numbers. */
#ifndef CAIRN_RECORD_AXIS_H
#define CAIRN_RECORD_AXIS_H

#include <stdbool.h>
#include <stddef.h>

enum { AXIS_TICKS_MOST = 16, AXIS_LABEL = 24 };

struct axis {
    double lo, hi; /* lo < hi; above 0 if is_log */
    bool is_log;
};

/* The axis for these values: an empty range is widened, and a margin is left at both ends.  is_log is dropped
 * if lo is not above 0. */
struct axis axis_fit(double lo, double hi, bool is_log);
/* 0 at lo, 1 at hi; beyond them for values outside. */
double axis_place(const struct axis *a, double v);
/* About `want` round numbers within the range, rising; returns how many. */
size_t axis_ticks(const struct axis *a, int want, double ticks[AXIS_TICKS_MOST]);
/* "250k", "3.25", "2e-4", in one notation for all of an axis; buf holds AXIS_LABEL bytes and is returned. */
const char *axis_label(const struct axis *a, double v, char *buf);

#endif
