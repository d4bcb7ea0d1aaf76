/* SPDX-License-Identifier: Apache-2.0
 * "Did you mean …?": finds the known word closest to a mistyped one.
 *
 *     struct suggestion n = { .word = typed };
 *     for (…) suggest_try(&n, candidate);
 *     if (n.best) …                                the first of the closest; NULL if none is close */
#ifndef CAIRN_BASE_SUGGEST_H
#define CAIRN_BASE_SUGGEST_H

#include <stddef.h>

struct suggestion {
    const char *word;
    const char *best;
    size_t distance; /* of best */
};

void suggest_try(struct suggestion *n, const char *candidate);
/* Edit distance: insertions, deletions, replacements and swaps of neighbours that turn a into b.  SIZE_MAX
 * for words of more than 63 bytes. */
size_t suggest_distance(const char *a, const char *b);

#endif
