/* SPDX-License-Identifier: Apache-2.0
 * A run's log.jsonl, read back: one point a step, steps rising.
 *
 * Lines of the same step are one point.  When steps start anew (a log that was not cut back), the later lines count.
 * Lines that cannot be read, such as a torn last one, are passed over and counted. */
#ifndef CAIRN_RECORD_SERIES_H
#define CAIRN_RECORD_SERIES_H

#include "record/step_record.h"

struct series {
    struct step_record *point; /* as step_record_parse gives them; note is NULL */
    size_t n, room;
    size_t bad_lines;
};

/* path is a log.jsonl.  An empty one gives no points. */
int series_read(const char *path, struct series *out, struct cairn_error *err);
/* The same for the end of it, at least the last `bytes` if there are so many. */
int series_read_tail(const char *path, uint64_t bytes, struct series *out, struct cairn_error *err);
void series_release(struct series *s);

/* The last point that has this metric; NULL if none has. */
const struct step_record *series_last(const struct series *s, enum metric which);
/* The point where it is least; points without a number do not count. */
const struct step_record *series_least(const struct series *s, enum metric which);
const struct step_record *series_most(const struct series *s, enum metric which);
/* The first point from `from` on that has an event; n if there is none. */
size_t series_next_event(const struct series *s, size_t from);
/* The mean of those that are numbers; NaN if none is. */
double series_mean(const struct series *s, enum metric which);

#endif
