/* SPDX-License-Identifier: Apache-2.0
 * The training in a log: its steps, losses that are no longer numbers, and how far it had come when the
 * log ends. */
#ifndef CAIRN_RULES_LOG_PROGRESS_H
#define CAIRN_RULES_LOG_PROGRESS_H

#include "rules/issue_rules.h"

/* What the last telling line spoke of. Silence is not success: only steps and what is finished speak for a
 * run whose end is not known. */
enum log_stage {
    LOG_STAGE_NONE,  /* no line told */
    LOG_STAGE_BUSY,  /* something began that takes long: loading, warming up, compiling */
    LOG_STAGE_STEPS, /* training steps */
    LOG_STAGE_DONE,  /* saved, finished, or ready to serve */
};

struct log_progress {
    enum log_stage stage;
    bool table;           /* the last line was the head of a table of losses, whose rows have no names */
    uint64_t behind_busy; /* lines behind the last that told of LOG_STAGE_BUSY */
    uint64_t steps;       /* training steps seen */
    uint64_t ends;        /* lines that tell of LOG_STAGE_DONE */
    bool loss_fine;       /* the last loss was a number other than 0 */
    bool loss_tiny;       /* so small that the next may be printed as 0 */
    unsigned zero_losses; /* the last ones that were exactly 0 */
};

/* "it/s" was found at a place of a piece. */
void log_progress_bar(struct log_progress *p, const char *s, size_t n, size_t at);
/* "step" or "epoch" of this length was. */
void log_progress_count(struct log_progress *p, const char *s, size_t n, size_t after);
/* To be called with each piece, before what is found in it. */
void log_progress_line(struct log_progress *p, const char *s, size_t n);
/* A text that tells of a stage was; a bar that has not moved tells of LOG_STAGE_BUSY, too. */
void log_progress_stage(struct log_progress *p, enum log_stage stage);
/* "loss" was. */
struct log_find log_progress_loss(struct log_progress *p, const char *s, size_t n, size_t at);
/* "grad_norm" was. */
struct log_find log_progress_grad_norm(const char *s, size_t n, size_t at);
/* "nan: " was, or "nans: ". */
struct log_find log_progress_nan_count(const char *s, size_t n, size_t at);

#endif
