/* SPDX-License-Identifier: Apache-2.0
 * A guess at an error that is in no table, by what a line speaks of and what it says of it: "… firmware
 * … mismatch". It counts where no row of the tables explains a failure better. */
#ifndef CAIRN_RULES_LOG_GUESS_H
#define CAIRN_RULES_LOG_GUESS_H

#include "rules/issue_rules.h"

/* A word that errors are told with was found at a place of a piece. */
struct log_find log_guess(const char *s, size_t n, size_t at);

#endif
