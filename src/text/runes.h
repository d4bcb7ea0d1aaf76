/* SPDX-License-Identifier: Apache-2.0
 * Text as a growing list of Unicode code points.
 *
 * {0} is an empty list; release it with runes_release or CLEANUP(runes_release).  Like struct str, it ends the
 * program if there is no memory. */
#ifndef CAIRN_TEXT_RUNES_H
#define CAIRN_TEXT_RUNES_H

#include "base/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUNE_REPLACEMENT 0xfffdu

struct runes {
    uint32_t *at;
    size_t n, cap;
};

void runes_add(struct runes *r, uint32_t c);
void runes_addn(struct runes *r, const uint32_t *at, size_t n);
/* Appends UTF-8.  Each invalid sequence becomes one U+FFFD, as Python decodes with errors="replace". */
void runes_add_utf8(struct runes *r, const char *s, size_t n);
bool runes_equal(const struct runes *a, const struct runes *b);
/* Leaves a with b's content, and b with a's. */
void runes_swap(struct runes *a, struct runes *b);
void runes_release(struct runes *r);

/* Appends code points as UTF-8. */
void str_add_runes(struct str *t, const uint32_t *at, size_t n);

/* White space as Python's \s and strip() have it: White_Space, and the separators U+001C to U+001F. */
bool rune_is_space(uint32_t c);

#endif
