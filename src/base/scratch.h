/* SPDX-License-Identifier: Apache-2.0
 * Working memory for the pieces of parallel_for: blocks of one size, kept from piece to piece, since fresh pages cost as
 * much as the work that is done in them.  Any thread may take and give. */
#ifndef CAIRN_BASE_SCRATCH_H
#define CAIRN_BASE_SCRATCH_H

#include "base/error.h"
#include <pthread.h>
#include <stddef.h>

struct scratch {
    pthread_mutex_t lock;
    void *idle;
    size_t bytes; /* of a block */
};

void scratch_init(struct scratch *s, size_t bytes);
/* A block that begins on a page; NULL if there is no memory. */
void *scratch_take(struct scratch *s, struct cairn_error *err);
void scratch_give(struct scratch *s, void *block);
void scratch_release(struct scratch *s); /* every block was given back; accepts a zeroed one */

#endif
