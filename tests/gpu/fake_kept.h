/* SPDX-License-Identifier: Apache-2.0
 * What a caller of the fake HIP may hold.  It stays in sight of the leak checker, as it would in a real runtime: a lost
 * device is left as it is. */
#ifndef CAIRN_TESTS_GPU_FAKE_KEPT_H
#define CAIRN_TESTS_GPU_FAKE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { FAKE_KEPT = 4096 };
static void *kept[FAKE_KEPT];

static inline void *keep(void *p)
{
    for (size_t i = 0; p && i < FAKE_KEPT; i++)
        if (!kept[i])
            return kept[i] = p;
    return p;
}

static inline void drop(void *p)
{
    for (size_t i = 0; i < FAKE_KEPT; i++)
        if (kept[i] == p)
            kept[i] = NULL;
    free(p);
}

static inline bool is_kept(const void *p)
{
    for (size_t i = 0; p && i < FAKE_KEPT; i++)
        if (kept[i] == p)
            return true;
    return false;
}

#endif
