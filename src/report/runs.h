/* SPDX-License-Identifier: Apache-2.0
 * Lists of runs: the keys of `cairn train --list --json` and `cairn run --history --json`. */
#ifndef CAIRN_REPORT_RUNS_H
#define CAIRN_REPORT_RUNS_H

#include "base/json.h"
#include "record/runs.h"

/* Both take the runs in the order of run_list, newest first; the caller frees the result.
 * now: seconds since 1970.  Native runs are listed oldest first. */
struct json *report_train_runs(const struct run_entry *runs, size_t n, int64_t now);
struct json *report_run_history(const struct run_entry *runs, size_t n);

int64_t run_age_s(const struct run_entry *r, int64_t now); /* since it was last written to */

#endif
