/* SPDX-License-Identifier: Apache-2.0
 * How far a job is, from the files that its trainer writes: log.jsonl of native training, or the progress bar
 * at the end of another trainer's log. */
#ifndef CAIRN_JOB_PROGRESS_H
#define CAIRN_JOB_PROGRESS_H

#include "base/arena.h"
#include "job/job_row.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Unknown numbers are negative, except the loss. */
struct job_progress {
    int64_t step, steps;
    bool has_loss;
    double loss; /* may be NaN or Inf */
    double s_per_it, eta_s;
    int64_t mem_bytes;
};
extern const struct job_progress job_progress_unknown;

/* Of a job that runs, from its files; of one that ended, what job_progress_keep kept. */
void job_progress_read(const char *state, const struct job_row *row, struct job_progress *out);
/* The row's options with the progress added, so that a list of ended jobs reads no files. */
const char *job_progress_keep(const char *state, const struct job_row *row, const char *run_dir,
                              struct arena *a);
/* Of a native run's folder. */
void job_progress_of_run(const char *run_dir, struct job_progress *out);
/* Of the end of a log: the last progress bar of the training and its last loss. */
void job_progress_of_log(const char *path, struct job_progress *out);
void job_progress_of_text(const char *text, size_t n, struct job_progress *out);

/* The same for a whole log, line by line, each without its end.  True: *out has a step of the training, with its loss
 * or without. */
struct job_progress_lines;
struct job_progress_lines *job_progress_lines_new(void);
void job_progress_lines_free(struct job_progress_lines *p); /* accepts NULL */
bool job_progress_line(struct job_progress_lines *p, const char *line, struct job_progress *out);

#endif
