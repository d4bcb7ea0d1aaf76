/* SPDX-License-Identifier: Apache-2.0
 * Curves for a terminal: a chart of block characters with axes, and a sparkline.  Plain ASCII on request. */
#ifndef CAIRN_RECORD_CHART_H
#define CAIRN_RECORD_CHART_H

#include "base/str.h"
#include "record/curve.h"
#include <stdbool.h>
#include <stddef.h>

struct chart_line {
    struct curve curve; /* owned by the caller; NaN and Inf are left out */
    const char *color;  /* escape sequence; NULL or "": none */
};

struct chart {
    const struct chart_line *lines;
    size_t n;
    int width, height;   /* of the inner field, in characters */
    bool is_log;         /* the y axis */
    bool utf8;           /* block characters; else ASCII */
    bool from_0;         /* the y axis starts at 0 */
    const double *marks; /* steps marked on the axis */
    size_t n_marks;
};

/* Adds `height` lines, the axis and its labels.  Without colours, marks tell several curves apart.  Adds
 * nothing if no curve has a finite value. */
void chart_draw(const struct chart *c, struct str *out);
/* What marks a step on the axis. */
const char *chart_tip(bool utf8);
/* The mark of a curve in a chart without colours: "a" for the first. */
char chart_mark(size_t line);

/* One character per value, the least at the bottom; a blank for NaN and Inf. */
void chart_sparkline(const double *values, size_t n, bool utf8, struct str *out);

#endif
