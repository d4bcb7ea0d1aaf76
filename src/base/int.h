/* SPDX-License-Identifier: Apache-2.0
 * How work is divided. */
#ifndef CAIRN_BASE_INT_H
#define CAIRN_BASE_INT_H

#include <stddef.h>

static inline size_t at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

/* Of this size, that make n; the last may be smaller. */
static inline size_t div_up(size_t n, size_t size)
{
    return (n + size - 1) / size;
}

#endif
