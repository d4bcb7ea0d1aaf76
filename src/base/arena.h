/* SPDX-License-Identifier: Apache-2.0
 * Memory for results with the same lifetime: facts, a plan, a list of findings.
 *
 * The caller that made the arena owns everything in it; parts are never freed alone.  Memory is zeroed and
 * aligned for any type.  These are small bookkeeping allocations: when one fails, the process prints a line
 * and aborts.  One thread at a time. */
#ifndef CAIRN_BASE_ARENA_H
#define CAIRN_BASE_ARENA_H

#include "base/cleanup.h"
#include <stdarg.h>
#include <stddef.h>

struct arena_block;
struct arena {
    struct arena_block *last; /* {0} is an empty arena, ready for use */
};

void *arena_alloc(struct arena *a, size_t size);
char *arena_strdup(struct arena *a, const char *s); /* NULL gives NULL */
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap);
void arena_release(struct arena *a); /* leaves an empty arena */

#define ARENA_NEW(a, type, count) ((type *)arena_alloc((a), sizeof(type) * (size_t)(count)))

/* A growing array inside an arena.  `items` is a T *, `n` its length; doubles when full.
 *     struct gpu_facts *g = ARENA_PUSH(arena, f->gpus, f->n_gpus);   gives the new, zeroed element */
#define ARENA_PUSH(a, items, n) \
    ((items) = arena_grow((a), (items), (size_t)(n), sizeof(*(items))), &(items)[(n)++])
void *arena_grow(struct arena *a, void *items, size_t n, size_t size);

#endif
