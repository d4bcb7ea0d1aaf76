/* SPDX-License-Identifier: Apache-2.0
 * The curves of runs as an SVG that needs nothing else: loss, as it is and smoothed, validation, the memory with the steps
 * that had trouble, and small panels for learning rate and speed.  It is light or dark as the reader's system is.
 *
 * A curve has no more points than the picture has columns, so the file stays small however long the run was. */
#ifndef CAIRN_RECORD_PLOT_H
#define CAIRN_RECORD_PLOT_H

#include "base/str.h"
#include "record/series.h"

struct plot_run {
    const char *name;
    const struct series *series;
};

struct plot_options {
    bool is_log;   /* the loss */
    size_t smooth; /* steps; 0: what fits the length of the run, 1: not at all */
};

/* Runs without a single loss are in the legend only. */
void plot_svg(const struct plot_run *runs, size_t n, const struct plot_options *o, struct str *out);
/* Replaces the file, whole or not at all. */
int plot_write(const char *path, const struct plot_run *runs, size_t n, const struct plot_options *o,
               struct cairn_error *err);
/* Reads a run's log.jsonl and writes its loss.svg. */
int plot_write_run(const char *dir, const char *name, struct cairn_error *err);

#endif
