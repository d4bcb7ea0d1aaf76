/* SPDX-License-Identifier: Apache-2.0 */
#include "base/block_pool.h"

#include "os/memory.h"

enum { PAGE = 4096 };

/* A free block holds the address of the next. */
struct idle {
    void *next;
};

void block_pool_init(struct block_pool *s, size_t bytes)
{
    *s = (struct block_pool){ .lock = PTHREAD_MUTEX_INITIALIZER, .bytes = (bytes + PAGE) / PAGE * PAGE };
}

void *block_pool_get(struct block_pool *s, struct cairn_error *err)
{
    pthread_mutex_lock(&s->lock);
    void *block = s->idle;
    if (block)
        s->idle = ((struct idle *)block)->next;
    pthread_mutex_unlock(&s->lock);
    if (!block && !(block = os_aligned(PAGE, s->bytes)))
        cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu bytes", s->bytes);
    return block;
}

void block_pool_put(struct block_pool *s, void *block)
{
    pthread_mutex_lock(&s->lock);
    ((struct idle *)block)->next = s->idle;
    s->idle = block;
    pthread_mutex_unlock(&s->lock);
}

void block_pool_close(struct block_pool *s)
{
    while (s->idle) {
        void *block = s->idle;
        s->idle = ((struct idle *)block)->next;
        os_free_aligned(block);
    }
}
