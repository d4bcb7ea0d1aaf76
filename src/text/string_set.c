/* SPDX-License-Identifier: Apache-2.0 */
#include "text/string_set.h"

#include "base/hash.h"
#include <stdlib.h>
#include <string.h>

static size_t *find_slot(const struct string_set *s, const char *p, size_t n)
{
    size_t at = hash_bytes(p, n);
    for (;; at++) {
        size_t *slot = &s->slots[at & (s->n_slots - 1)];
        if (!*slot)
            return slot;
        const struct string_set_entry *x = &s->list[*slot - 1];
        if (x->n == n && !memcmp(s->text.s + x->at, p, n))
            return slot;
    }
}

static int widen(struct string_set *s, struct cairn_error *err)
{
    size_t n = s->n_slots ? 2 * s->n_slots : 1 << 12;
    size_t *slots = calloc(n, sizeof(*slots));
    if (!slots)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu words", n);
    free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    for (size_t i = 0; i < s->n; i++)
        *find_slot(s, s->text.s + s->list[i].at, s->list[i].n) = i + 1;
    return 0;
}

static int append(struct string_set *s, const char *p, size_t n, struct cairn_error *err)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        struct string_set_entry *list = realloc(s->list, cap * sizeof(*list));
        if (!list)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu words", cap);
        s->list = list;
        s->cap = cap;
    }
    s->list[s->n++] = (struct string_set_entry){ s->text.len, (uint32_t)n, 0 };
    str_addn(&s->text, p, n);
    return 0;
}

int string_set_put(struct string_set *s, const char *p, size_t n, size_t *index, struct cairn_error *err)
{
    if (2 * (s->n + 1) > s->n_slots && widen(s, err))
        return -1;
    size_t *slot = find_slot(s, p, n);
    if (!*slot) {
        if (append(s, p, n, err))
            return -1;
        *slot = s->n;
    }
    *index = *slot - 1;
    return 0;
}

size_t string_set_find(const struct string_set *s, const char *p, size_t n)
{
    return *find_slot(s, p, n) - 1;
}

void string_set_release(struct string_set *s)
{
    str_release(&s->text);
    free(s->list);
    free(s->slots);
}
