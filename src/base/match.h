/* SPDX-License-Identifier: Apache-2.0
 * Many fixed strings, looked for at once.
 *
 * Built once from a table, then only read: several threads may search with one set.  Letters of ASCII match in either
 * case, and the quotes ' " ` match each other: programs do not agree on them.  The cost of text that holds none of the
 * strings is about that of looking at each byte once. */
#ifndef CAIRN_BASE_MATCH_H
#define CAIRN_BASE_MATCH_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MATCH_SHORTEST = 4, MATCH_MOST = 4096 }; /* of a string's bytes; of strings */

struct match_set;

/* The strings are not copied.  Fails for one that has no run of MATCH_SHORTEST bytes without a quote, and for too
 * many. */
int match_set_new(const char *const *strings, size_t n, struct match_set **out, struct cairn_error *err);
void match_set_free(struct match_set *m); /* NULL is fine */

/* Calls found for each place where a string lies in the text, from left to right, with the string's index and
 * the place. */
void match_set_find(const struct match_set *m, const char *text, size_t n,
                    void (*found)(void *to, size_t index, size_t at), void *to);

/* Is one of some alternatives, separated by '|', in the text? */
bool match_any(const char *text, size_t n, const char *alternatives);

#endif
