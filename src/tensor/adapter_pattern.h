/* SPDX-License-Identifier: Apache-2.0
 * The patterns of PEFT's rank_pattern and alpha_pattern: Python's regular expressions for names of modules.
 *
 * A pattern matches a module if it matches its whole name, or all of it after a dot.  Supported is the syntax
 * common to Python and POSIX, and \d, (?:…) and escaped punctuation; anything else is refused, because POSIX
 * would read it differently.  Patterns come from untrusted files, so their length and repeat counts are
 * limited. */
#ifndef CAIRN_TENSOR_ADAPTER_PATTERN_H
#define CAIRN_TENSOR_ADAPTER_PATTERN_H

#include "base/error.h"
#include <regex.h>
#include <stdbool.h>

/* The message says what is wrong with the pattern, not where it is.  regfree() the result. */
int adapter_pattern_make(const char *pattern, regex_t *out, struct cairn_error *err);
/* It matches only whole names, as in musubi-tuner. */
int adapter_pattern_make_whole(const char *pattern, regex_t *out, struct cairn_error *err);
bool adapter_pattern_fits(const regex_t *pattern, const char *module);

#endif
