/* SPDX-License-Identifier: Apache-2.0
 * What run_series.c and run_series_write.c share. */
#ifndef CAIRN_WEB_RUN_SERIES_INSIDE_H
#define CAIRN_WEB_RUN_SERIES_INSIDE_H

#include "os/info.h"
#include "web/pyramid.h"
#include "web/run_series.h"

enum { RUN_SERIES_CHECK = 64 };

struct run_series_event {
    uint64_t step;
    const char *event; /* from the table of record/step_record.c */
    char *note;        /* may be NULL */
};

struct run_series {
    unsigned metrics; /* those that are read */
    uint64_t *step;
    size_t n, room;
    struct pyramid metric[METRIC_COUNT];
    struct run_series_event *event; /* the last RUN_SERIES_EVENTS, by step */
    size_t n_events, events_room;
    /* The log up to `offset`, which is the end of a line. */
    struct os_info info;
    uint64_t offset;
    bool is_long;                 /* in the middle of a line that is too long */
    char check[RUN_SERIES_CHECK]; /* the last bytes before `offset` */
    size_t n_check;
    /* The output of another trainer. */
    struct job_progress_lines *lines;
    int64_t bar_step, bar_steps; /* the last bar, and how many steps it counts */
    uint64_t before;             /* steps of bars that are full: one for each epoch */
};

#endif
