/* SPDX-License-Identifier: Apache-2.0
 * The metrics of a training step: one line of a run's log.jsonl.
 *
 * Steps count from 1: step 120 means that 120 steps are done.  A metric that was not measured is absent, not
 * 0.  NaN and Inf are null in the line, with a second key: "loss":null,"loss_is":"nan". */
#ifndef CAIRN_RECORD_STEP_RECORD_H
#define CAIRN_RECORD_STEP_RECORD_H

#include "base/error.h"
#include "base/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum metric {
    METRIC_LOSS,
    METRIC_VAL_LOSS,
    METRIC_VAL_LOSS_Q1, /* by quarter of the timesteps */
    METRIC_VAL_LOSS_Q2,
    METRIC_VAL_LOSS_Q3,
    METRIC_VAL_LOSS_Q4,
    METRIC_LR,
    METRIC_GRAD_NORM,
    METRIC_TOKENS_PER_S,
    METRIC_S_PER_IT,
    METRIC_MEM_BYTES,
    METRIC_MEM_ALLOCATED, /* from the device's pool: gpu/pool.h */
    METRIC_MEM_RESERVED,
    METRIC_MEM_PEAK,
    METRIC_MEM_HOST, /* offloaded bytes; absent while 0 */
    METRIC_MEM_HOLE,
    METRIC_MEM_FRAGMENTATION,
    METRIC_MEM_RELEASED, /* counts, absent while 0 */
    METRIC_MEM_COMPACTED,
    METRIC_MEM_EVICTED,
    METRIC_MEM_REFUSED,
    METRIC_COPY_SMALL_RING, /* the same for copies: gpu/transfer.h */
    METRIC_COPY_PAGEABLE,
    METRIC_COPY_STEPS,
    METRIC_COPY_PIECES,
    METRIC_COPY_REFUSED,
    METRIC_LOSS_SCALE,
    METRIC_ELAPSED_S, /* training time without pauses between two starts; set by run_log_add */
    METRIC_COUNT,
};

struct step_record {
    uint64_t step;
    unsigned has; /* one bit per metric */
    double value[METRIC_COUNT];
    const char *event; /* "eval", "checkpoint", "oom" …; NULL: an ordinary step */
    const char *note;  /* details of the event, or NULL */
};

/* The key in the log, which is also the tag of the curve. */
const char *metric_key(enum metric m);

void step_record_set(struct step_record *m, enum metric which, double value);
bool step_record_has(const struct step_record *m, enum metric which);
/* Adds the line, with its line feed. */
void step_record_add_line(const struct step_record *m, struct str *out);
/* Parses a line.  Of the events it returns only those that plots mark, i.e. problems, and no note.  Ignores
 * unknown keys. */
int step_record_parse(const char *line, size_t len, struct step_record *out, struct cairn_error *err);
/* The same for long logs of which only some metrics are wanted, one bit each.  Others may be set or not.  Of a line whose
 * metrics are in another order than the enum's, which step_record_add_line never writes, it may miss some. */
int step_record_parse_some(const char *line, size_t len, unsigned wanted, struct step_record *out,
                           struct cairn_error *err);

#endif
