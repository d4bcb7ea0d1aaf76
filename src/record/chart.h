/* SPDX-License-Identifier: Apache-2.0
 * Curves for a terminal: a chart of block characters with axes, and a sparkline.  Plain ASCII on request. */
#ifndef CAIRN_RECORD_CHART_H
#define CAIRN_RECORD_CHART_H

#include "base/str.h"
#include "record/curve.h"
#include <stdbool.h>
#include <stddef.h>

struct chart_line {
    struct curve curve; /* belongs to the caller; a value that is no number is left out */
    const char *color;  /* the escape that begins it; NULL or "": none */
};

struct chart {
    const struct chart_line *lines;
    size_t n;
    int width, height;   /* of the inner field, in characters */
    bool is_log;         /* the y axis */
    bool utf8;           /* block characters; else ASCII */
    bool from_0;         /* the y axis begins there */
    const double *marks; /* steps that are marked on the axis */
    size_t n_marks;
};

/* height lines, the axis and its labels.  Without colours several curves are told apart by their marks.  Nothing if no
 * curve has a number. */
void chart_draw(const struct chart *c, struct str *out);
/* What marks a step on the axis. */
const char *chart_tip(bool utf8);
/* The mark of a curve in a chart without colours: "a" for the first. */
char chart_mark(size_t line);

/* One character a value, the least at the bottom; one that is no number is a blank. */
void chart_sparkline(const double *values, size_t n, bool utf8, struct str *out);

#endif
