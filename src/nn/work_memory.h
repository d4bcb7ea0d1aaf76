/* SPDX-License-Identifier: Apache-2.0
 * One allocation for all buffers of a workspace.  The same function that lists the buffers first counts their
 * bytes, with base NULL, and then gets their addresses. */
#ifndef CAIRN_NN_WORK_MEMORY_H
#define CAIRN_NN_WORK_MEMORY_H

#include "base/int.h"

enum { WORK_ALIGN = 256 };

struct work_memory {
    char *base; /* NULL: only the size is needed */
    size_t used;
};

static inline void *work_memory_add(struct work_memory *p, size_t bytes)
{
    size_t at = p->used;
    p->used += align_up(bytes, WORK_ALIGN);
    return p->base ? p->base + at : NULL;
}

#endif
