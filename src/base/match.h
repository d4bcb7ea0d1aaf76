/* SPDX-License-Identifier: Apache-2.0
 * Searches for many fixed strings at once.
 *
 * Built once from a table, then only read: several threads may share a set.  ASCII letters match in either
 * case, and the quotes ' " ` match each other, because programs differ in them.  Text without any of the
 * strings costs about one read per byte. */
#ifndef CAIRN_BASE_MATCH_H
#define CAIRN_BASE_MATCH_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MATCH_SHORTEST = 4, MATCH_MOST = 4096 }; /* bytes of a string; strings */

struct match_set;

/* The strings are not copied.  Fails for one that has no run of MATCH_SHORTEST bytes without a quote, and for
 * too many. */
int match_set_new(const char *const *strings, size_t n, struct match_set **out, struct cairn_error *err);
void match_set_free(struct match_set *m); /* NULL is fine */

/* Calls found for each occurrence of a string in the text, from left to right, with the string's index and
 * the offset. */
void match_set_find(const struct match_set *m, const char *text, size_t n,
                    void (*found)(void *to, size_t index, size_t at), void *to);

/* Whether the text contains one of several alternatives, separated by '|'. */
bool match_any(const char *text, size_t n, const char *alternatives);
/* Where the text contains the string for the first time; NULL: nowhere. An empty one is at the start. */
const char *match_find(const char *text, size_t n, const char *s);

#endif
