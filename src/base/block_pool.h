/* SPDX-License-Identifier: Apache-2.0
 * Working memory for the pieces of parallel_for: blocks of one size, reused from piece to piece, because
 * fresh pages cost as much as the work done in them.  Thread-safe. */
#ifndef CAIRN_BASE_BLOCK_POOL_H
#define CAIRN_BASE_BLOCK_POOL_H

#include "base/error.h"
#include <pthread.h>
#include <stddef.h>

struct block_pool {
    pthread_mutex_t lock;
    void *idle;
    size_t bytes; /* of a block */
};

void block_pool_init(struct block_pool *s, size_t bytes);
/* A page-aligned block; NULL if there is no memory. */
void *block_pool_get(struct block_pool *s, struct cairn_error *err);
void block_pool_put(struct block_pool *s, void *block);
void block_pool_close(struct block_pool *s); /* after every block was put back; accepts a zeroed one */

#endif
