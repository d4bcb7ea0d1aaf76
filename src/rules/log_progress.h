/* SPDX-License-Identifier: Apache-2.0
 * The training in a log: its steps, and losses that are no longer numbers. */
#ifndef CAIRN_RULES_LOG_PROGRESS_H
#define CAIRN_RULES_LOG_PROGRESS_H

#include "rules/issue_rules.h"

struct log_progress {
    uint64_t steps;       /* training steps seen */
    bool loss_fine;       /* the last loss was a number other than 0 */
    bool loss_tiny;       /* so small that the next may be printed as 0 */
    unsigned zero_losses; /* the last ones that were exactly 0 */
};

/* "it/s" was found at a place of a piece. */
void log_progress_bar(struct log_progress *p, const char *s, size_t n, size_t at);
/* "loss" was. */
struct log_find log_progress_loss(struct log_progress *p, const char *s, size_t n, size_t at);
/* "grad_norm" was. */
struct log_find log_progress_grad_norm(const char *s, size_t n, size_t at);

#endif
