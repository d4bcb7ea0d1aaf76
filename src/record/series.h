/* SPDX-License-Identifier: Apache-2.0
 * Reads a run's log.jsonl: one point per step, in rising order.
 *
 * Lines of the same step form one point.  If steps start over (a log that was not truncated), the later lines
 * count. Unreadable lines, such as an incomplete last one, are skipped and counted. */
#ifndef CAIRN_RECORD_SERIES_H
#define CAIRN_RECORD_SERIES_H

#include "record/step_record.h"

struct series {
    struct step_record *point; /* from step_record_parse; note is NULL */
    size_t n, capacity;
    size_t bad_lines;
};

/* path is a log.jsonl.  An empty one gives no points. */
int series_read(const char *path, struct series *out, struct cairn_error *err);
/* The same for the end of the file, at least the last `bytes` if it has that many. */
int series_read_tail(const char *path, uint64_t bytes, struct series *out, struct cairn_error *err);
void series_release(struct series *s);

/* The last point that has this metric; NULL if none has. */
const struct step_record *series_last(const struct series *s, enum metric which);
/* The point where it is lowest; NaN and Inf do not count. */
const struct step_record *series_least(const struct series *s, enum metric which);
const struct step_record *series_most(const struct series *s, enum metric which);
/* The first point from `from` on that has an event; n if there is none. */
size_t series_next_event(const struct series *s, size_t from);
/* The mean of the finite values; NaN if there are none. */
double series_mean(const struct series *s, enum metric which);

#endif
