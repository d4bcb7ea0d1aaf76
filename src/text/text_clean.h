/* SPDX-License-Identifier: Apache-2.0
 * Captions as the Wan reference hands them to its tokenizer. */
#ifndef CAIRN_TEXT_TEXT_CLEAN_H
#define CAIRN_TEXT_TEXT_CLEAN_H

#include "base/error.h"
#include "base/str.h"

/* Appends what Python makes of the text with ftfy.fix_text (6.3), html.unescape twice, each run of white space
 * to one space, and strip.  Invalid UTF-8 is replaced by U+FFFD first.  Characters newer than Unicode 15 are not
 * composed. */
int text_clean(const char *text, size_t n, struct str *out, struct cairn_error *err);

#endif
