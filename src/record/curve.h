/* SPDX-License-Identifier: Apache-2.0
 * One metric of a run over its steps, for drawing. */
#ifndef CAIRN_RECORD_CURVE_H
#define CAIRN_RECORD_CURVE_H

#include "record/series.h"

struct curve {
    double *step, *value; /* the points that have the metric; a value may be no number */
    size_t n;
};

/* The values are divided by unit.  Release it with curve_release. */
struct curve curve_of(const struct series *s, enum metric which, double unit);
void curve_release(struct curve *c);

struct range {
    double lo, hi; /* lo > hi: there is no number */
};
/* What a picture should show: all of it, unless a few values are so far above the others that those would be a flat
 * line; then these few lie outside. */
struct range curve_range(const struct curve *c);

/* The mean of a window of values around each; one that is no number counts for nothing and stays none, and one that lies
 * outside the range counts as its end.  At the start the window is as narrow as what lies before it, so that a steep fall
 * keeps its place. */
struct curve curve_mean(const struct curve *c, size_t window);
/* The window that fits its length. */
size_t curve_window(const struct curve *c);

#endif
