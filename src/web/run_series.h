/* SPDX-License-Identifier: Apache-2.0
 * The metrics of a run over its steps, kept in memory: a second read takes only what was appended to the log.
 *
 * Native training writes one line per step to log.jsonl (record/step_record.h).  Lines of the same step form one point.
 * Steps that start over replace what was there, so that a resumed run is one curve.  Beyond RUN_SERIES_POINTS points
 * each two become one, so that memory stays bounded.  One thread at a time. */
#ifndef CAIRN_WEB_RUN_SERIES_H
#define CAIRN_WEB_RUN_SERIES_H

#include "base/error.h"
#include "base/str.h"
#include "record/step_record.h"
#include <stddef.h>
#include <stdint.h>

enum { RUN_SERIES_POINTS = 2 << 20, RUN_SERIES_EVENTS = 1000 };
#define RUN_SERIES_ALL ((1u << METRIC_COUNT) - 1)

struct run_series;
struct run_series *run_series_new(void);
void run_series_free(struct run_series *s); /* accepts NULL */

/* Reads what is new in the log at `path`.  `metrics` has a bit for each that is wanted; if one of them was not wanted
 * before, the log is read from its start.  So it is if the file was truncated or replaced.  A file that does not exist
 * has no points; an incomplete last line waits for the next time. */
int run_series_read(struct run_series *s, const char *path, unsigned metrics, struct cairn_error *err);
/* The same from the output of another trainer, the log of a journal at `path` (run/log_parts.h): its loss and its seconds
 * per step, where its progress bar comes with a loss. */
int run_series_read_output(struct run_series *s, const char *path, struct cairn_error *err);
size_t run_series_bytes(const struct run_series *s);

struct run_series_view {
    unsigned metrics;
    bool only_known;   /* leaves out metrics without a value in this view */
    uint64_t from, to; /* steps, both included */
    size_t points;     /* at most */
};
/* {"schema":1,"step":[…],"metrics":{"loss":{"min":[…],"max":[…],"mean":[…]}},"events":[…],"last_step":N}.  Each point stands
 * for as many steps as the others, and "step" has the last of them. */
int run_series_write(struct run_series *s, const struct run_series_view *v, struct str *out,
                     struct cairn_error *err);

#endif
