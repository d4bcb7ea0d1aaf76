/* SPDX-License-Identifier: Apache-2.0
 * What one sees while training runs: on a terminal one line, rewritten in place; anywhere else a plain line every few
 * seconds.
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
    uint64_t first, total;   /* the steps that are timed: from first to total */
    double started, shown;   /* monotonic seconds; shown is negative before the first line */
    double bin[TICKER_BINS]; /* means of the loss over equal stretches, the last one growing */
    size_t bins, per_bin, in_bin;
    struct step_record last;
    uint64_t shown_step;
};

/* total is the last step of the run. */
void ticker_start(struct ticker *t, FILE *out, uint64_t total);
void ticker_step(struct ticker *t, const struct step_record *m);
/* Something worth a line of its own; the progress line goes on below it. */
void ticker_say(struct ticker *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The last line stays. */
void ticker_end(struct ticker *t);

/* The line for so many columns when the timed steps took so many seconds. */
void ticker_text(const struct ticker *t, double seconds, int width, char buf[TICKER_LINE]);

#endif
