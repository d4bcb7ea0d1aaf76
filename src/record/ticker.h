/* SPDX-License-Identifier: Apache-2.0
 * Progress of training: on a terminal one line, rewritten in place; elsewhere a plain line every few seconds.
 *
 *     step 120/1000  loss 3.214  1,850 tok/s  mem 1.2 GiB  ETA 7:12  █▆▄▃▂▂▁▁
 *
 * One thread at a time. */
#ifndef CAIRN_RECORD_TICKER_H
#define CAIRN_RECORD_TICKER_H

#include "base/cleanup.h"
#include "record/step_record.h"
#include <stdio.h>

enum { TICKER_BINS = 24, TICKER_LINE = 256 };

struct ticker {
    FILE *out; /* NULL: silent */
    bool terminal, utf8;
    uint64_t first, total;   /* the timed steps: from first to total */
    double started, shown;   /* monotonic seconds; shown is negative before the first line */
    double bin[TICKER_BINS]; /* mean loss over equal numbers of steps, the last bin growing */
    size_t bins, per_bin, in_bin;
    double step_work; /* of the last step, where steps differ; 0: they are alike */
    double work_left; /* of the steps to come */
    double work_done; /* of the timed steps */
    struct step_record last;
    uint64_t shown_step;
};

/* total is the last step of the run. */
void ticker_start(struct ticker *t, FILE *out, uint64_t total);
void ticker_step(struct ticker *t, const struct step_record *m);
/* Before ticker_step, where steps differ in their work: that of the step, and of all to come.  The ETA follows from
 * it. */
void ticker_work(struct ticker *t, double step, double left);
/* Prints a message on a line of its own, above the progress line. */
void ticker_say(struct ticker *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The last line stays. */
void ticker_end(struct ticker *t);

/* The line for `width` columns after `seconds` of timed steps. */
void ticker_text(const struct ticker *t, double seconds, int width, char buf[TICKER_LINE]);

#endif
