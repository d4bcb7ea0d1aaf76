/* SPDX-License-Identifier: Apache-2.0
 * Durations of the last steps of a run, and how long a step may take before it counts as slow or hung.  Steps may differ in
 * their work: then a duration is that of a unit of work. */
#ifndef CAIRN_TRAIN_STEP_TIMES_H
#define CAIRN_TRAIN_STEP_TIMES_H

#include <stddef.h>

enum { STEP_TIMES_MOST = 31, STEP_TIMES_ENOUGH = 5 };

struct step_times {
    double took[STEP_TIMES_MOST]; /* seconds; the oldest is overwritten */
    size_t n;                     /* steps added so far, including the ignored ones */
};

/* Adds a completed step: its seconds, divided by its work if steps differ.  The first two are ignored: they compile kernels and tune matmuls. */
void step_times_add(struct step_times *p, double seconds);
/* The next steps differ from the previous ones. */
void step_times_reset(struct step_times *p);
/* Median of the last steps; 0 while there are too few. */
double step_times_median(const struct step_times *p);

/* Seconds after which a step counts as slow, and after which it is aborted; 0: not known yet, or never.
 * work: of the step; 1 if all are alike.  hang_after_s is how long the device may take to answer a single
 * call. */
double step_times_slow_s(const struct step_times *p, double work, int hang_after_s);
double step_times_end_s(const struct step_times *p, double work, int hang_after_s);

#endif
