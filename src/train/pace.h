/* SPDX-License-Identifier: Apache-2.0
 * How long the steps of a run take, and from when on one takes far too long. */
#ifndef CAIRN_TRAIN_PACE_H
#define CAIRN_TRAIN_PACE_H

#include <stddef.h>

enum { PACE_KEPT = 31, PACE_ENOUGH = 5 };

struct pace {
    double took[PACE_KEPT]; /* seconds; the oldest is overwritten */
    size_t n;               /* added so far, those left out counted */
};

/* A step that was done.  The first two are left out: kernels are compiled in them, and ways are measured. */
void pace_add(struct pace *p, double seconds);
/* The next steps are not like those before. */
void pace_forget(struct pace *p);
/* Of the last steps; 0 while they are too few. */
double pace_median(const struct pace *p);

/* Seconds after which a step is called slow, and after which it is ended; 0: not known yet, or never.  hang_after_s is how
 * long a device may leave a single question without an answer. */
double pace_slow_s(const struct pace *p, int hang_after_s);
double pace_end_s(const struct pace *p, int hang_after_s);

#endif
