/* SPDX-License-Identifier: Apache-2.0
 * The replacements of characters that a SentencePiece model brings along (precompiled_charsmap): a double-array
 * trie of byte strings, as Darts-clone builds it, and the texts that replace them.
 *
 * The bytes come from a file and are not trusted: a walk that leaves the array finds nothing. */
#ifndef CAIRN_TEXT_CHARSMAP_H
#define CAIRN_TEXT_CHARSMAP_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* {0} is an empty map. */
struct charsmap {
    uint32_t *units; /* of the double array */
    size_t n_units;
    char *text; /* the replacements, each with a NUL behind it */
    size_t n_text;
};

/* Copies the map out of the bytes. */
int charsmap_parse(struct charsmap *m, const void *bytes, size_t n, struct cairn_error *err);
/* The shortest or the longest key that s begins with: returns its bytes and what replaces it, or 0. */
size_t charsmap_find(const struct charsmap *m, const char *s, size_t n, bool longest, const char **with,
                     size_t *with_n);
void charsmap_release(struct charsmap *m);

#endif
