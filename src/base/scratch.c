/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scratch.h"

#include "os/memory.h"

enum { PAGE = 4096 };

/* An idle block holds the address of the next. */
struct idle {
    void *next;
};

void scratch_init(struct scratch *s, size_t bytes)
{
    *s = (struct scratch){ .lock = PTHREAD_MUTEX_INITIALIZER, .bytes = (bytes + PAGE) / PAGE * PAGE };
}

void *scratch_take(struct scratch *s, struct cairn_error *err)
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

void scratch_give(struct scratch *s, void *block)
{
    pthread_mutex_lock(&s->lock);
    ((struct idle *)block)->next = s->idle;
    s->idle = block;
    pthread_mutex_unlock(&s->lock);
}

void scratch_release(struct scratch *s)
{
    while (s->idle) {
        void *block = s->idle;
        s->idle = ((struct idle *)block)->next;
        os_free_aligned(block);
    }
}
