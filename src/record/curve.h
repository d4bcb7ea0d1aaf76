/* SPDX-License-Identifier: Apache-2.0
 * One metric of a run over its steps, for drawing. */
#ifndef CAIRN_RECORD_CURVE_H
#define CAIRN_RECORD_CURVE_H

#include "record/series.h"

struct curve {
    double *step, *value; /* the points that have the metric; a value may be NaN or Inf */
    size_t n;
};

/* The values are divided by unit.  Release it with curve_release. */
struct curve curve_of(const struct series *s, enum metric which, double unit);
void curve_release(struct curve *c);

struct range {
    double lo, hi; /* lo > hi: no finite value */
};
/* The range to show: all values, unless a few outliers are so high that the others would be a flat line; then
 * the outliers lie outside. */
struct range curve_range(const struct curve *c);

/* Moving average over a window around each value.  NaN and Inf are ignored and stay as they are; values
 * outside the range are clamped to it.  Near the start the window is narrower, so that a steep fall keeps its
 * position. */
struct curve curve_mean(const struct curve *c, size_t window);
/* The default window for a curve of this length. */
size_t curve_window(const struct curve *c);

#endif
