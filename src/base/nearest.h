/* SPDX-License-Identifier: Apache-2.0
 * "Did you mean …?": the known word that a mistyped one is nearest to.
 *
 *     struct nearest n = { .word = typed };
 *     for (…) nearest_try(&n, candidate);
 *     if (n.best) …                                the first of the nearest; NULL if none is near */
#ifndef CAIRN_BASE_NEAREST_H
#define CAIRN_BASE_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word;
    const char *best;
    size_t distance; /* of best */
};

void nearest_try(struct nearest *n, const char *candidate);
/* How many letters must be put in, left out, replaced or swapped with their neighbour to make b of a.  Words of more
 * than 63 bytes are infinitely far. */
size_t nearest_distance(const char *a, const char *b);

#endif
