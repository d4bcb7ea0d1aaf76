/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
    struct arena_block *before;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

enum { BLOCK_BYTES = 32 * 1024 };

static struct arena_block *block_new(struct arena *a, size_t size)
{
    struct arena_block *b = NULL;
    if (size <= SIZE_MAX - sizeof(*b))
        b = calloc(1, sizeof(*b) + size);
    if (!b) {
        fprintf(stderr, "cairn: out of memory (%zu bytes)\n", size);
        abort();
    }
    b->before = a->last;
    b->size = size;
    a->last = b;
    return b;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size_t need = (size + 15) & ~(size_t)15;
    if (need < size)
        need = SIZE_MAX; /* overflow: block_new refuses it */
    struct arena_block *b = a->last;
    if (!b || b->size - b->used < need)
        b = block_new(a, need > BLOCK_BYTES ? need : BLOCK_BYTES);
    void *p = b->bytes + b->used;
    b->used += need;
    return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
    char *copy = arena_alloc(a, n + 1);
    memcpy(copy, s, n);
    return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
    return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        return arena_strdup(a, "");
    char *s = arena_alloc(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    return s;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return s;
}

void *arena_grow(struct arena *a, void *items, size_t n, size_t size)
{
    /* The capacity is 4, 8, 16 …: the array is full when its length is one of these. */
    if (n != 0 && (n < 4 || (n & (n - 1)) != 0))
        return items;
    void *bigger = arena_alloc(a, size * (n ? n * 2 : 4));
    if (n)
        memcpy(bigger, items, n * size);
    return bigger;
}

void arena_release(struct arena *a)
{
    while (a->last) {
        struct arena_block *b = a->last;
        a->last = b->before;
        free(b);
    }
}
