/* SPDX-License-Identifier: Apache-2.0
 * Sizes: bounds, division and alignment. */
#ifndef CAIRN_BASE_INT_H
#define CAIRN_BASE_INT_H

#include <stddef.h>

static inline size_t at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

static inline size_t at_least(size_t n, size_t least)
{
    return n > least ? n : least;
}

/* How many pieces of this size make n; the last may be smaller. */
static inline size_t div_up(size_t n, size_t size)
{
    return (n + size - 1) / size;
}

/* The next multiple of `to`, or n itself. */
static inline size_t align_up(size_t n, size_t to)
{
    return div_up(n, to) * to;
}

#endif
