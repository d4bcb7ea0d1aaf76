/* SPDX-License-Identifier: Apache-2.0
 * Results of training runs: the keys of `cairn plot --json`. */
#ifndef CAIRN_REPORT_PLOT_H
#define CAIRN_REPORT_PLOT_H

#include "base/json.h"
#include "record/series.h"

struct run_curves {
    const char *dir, *name;
    struct series series;
};

/* The results of one run; NULL if the log has none. */
struct run_figures {
    const struct step_record *loss, *best, *val, *best_val, *memory, *time;
    double tokens_per_s; /* NaN: unknown */
    uint64_t steps;
};
struct run_figures run_figures(const struct series *s);

/* svg: the plot that was written; NULL: none.  The caller frees it. */
struct json *report_plot(const struct run_curves *runs, size_t n, const char *svg);

#endif
