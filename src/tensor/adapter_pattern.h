/* SPDX-License-Identifier: Apache-2.0
 * The patterns of PEFT's rank_pattern and alpha_pattern: Python's regular expressions for names of modules.
 *
 * One fits a module when it fits all of its name, or all of it behind some dot.  What Python and POSIX write alike is
 * taken, and \d, (?:…) and escaped punctuation besides; anything else is refused, since it would be understood wrongly.
 * Patterns come from files of strangers, so their length and their repeat counts are bounded. */
#ifndef CAIRN_TENSOR_ADAPTER_PATTERN_H
#define CAIRN_TENSOR_ADAPTER_PATTERN_H

#include "base/error.h"
#include <regex.h>
#include <stdbool.h>

/* The message says what is wrong with the pattern, not where it stands.  regfree() what was made. */
int adapter_pattern_make(const char *pattern, regex_t *out, struct cairn_error *err);
bool adapter_pattern_fits(const regex_t *pattern, const char *module);

#endif
