/* SPDX-License-Identifier: Apache-2.0
 * The curves of runs as a self-contained SVG: loss, raw and smoothed, validation loss, memory with the steps
 * that had an event, and small panels for learning rate and speed.  It follows the system's light or dark
 * theme.
 *
 * A curve has at most as many points as the picture has columns, so the file stays small however long the run
 * was. */
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
    size_t smooth; /* steps; 0: automatic, by the length of the run; 1: off */
};

/* Runs without any loss appear in the legend only. */
void plot_svg(const struct plot_run *runs, size_t n, const struct plot_options *o, struct str *out);
/* Replaces the file atomically. */
int plot_write(const char *path, const struct plot_run *runs, size_t n, const struct plot_options *o,
               struct cairn_error *err);
/* Reads a run's log.jsonl and writes its loss.svg. */
int plot_write_run(const char *dir, const char *name, struct cairn_error *err);

#endif
