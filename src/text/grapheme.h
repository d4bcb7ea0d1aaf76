/* SPDX-License-Identifier: Apache-2.0
 * Characters as a reader sees them: a letter with its accents, a flag, a family of emoji (extended grapheme
 * clusters of Unicode). */
#ifndef CAIRN_TEXT_GRAPHEME_H
#define CAIRN_TEXT_GRAPHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the cluster at s, where n > 0 bytes of UTF-8 are left. */
size_t grapheme_next(const char *s, size_t n);
/* \w of regular expressions. */
bool grapheme_is_word(uint32_t c);

#endif
