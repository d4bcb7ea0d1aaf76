/* SPDX-License-Identifier: Apache-2.0 */
#include "text/trie.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NODES = 1 << 24 };

static struct trie_edge *find_slot(const struct trie *t, uint32_t node, unsigned char byte)
{
    size_t mask = t->n_slots - 1;
    uint64_t key = ((uint64_t)node << 8 | byte) * 0x9e3779b97f4a7c15u;
    for (size_t at = (size_t)(key >> 32);; at++) {
        struct trie_edge *e = &t->edges[at & mask];
        if (!e->to_and_byte || (e->from == node && (e->to_and_byte & 0xff) == byte))
            return e;
    }
}

static int widen(struct trie *t, size_t n_slots, struct cairn_error *err)
{
    struct trie old = *t;
    t->n_slots = n_slots;
    t->edges = calloc(t->n_slots, sizeof(*t->edges));
    if (!t->edges) {
        *t = old;
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the %zu nodes of a trie", t->n_nodes);
    }
    for (size_t i = 0; i < old.n_slots; i++)
        if (old.edges[i].to_and_byte)
            *find_slot(t, old.edges[i].from, old.edges[i].to_and_byte & 0xff) = old.edges[i];
    free(old.edges);
    return 0;
}

int trie_reserve(struct trie *t, size_t bytes, struct cairn_error *err)
{
    size_t slots = 1 << 10;
    while (slots < 2 * bytes && slots < 2 * (size_t)MOST_NODES)
        slots *= 2;
    return slots > t->n_slots ? widen(t, slots, err) : 0;
}

static int add_node(struct trie *t, struct cairn_error *err)
{
    if (t->n_nodes == MOST_NODES)
        return cairn_fail(err, CAIRN_EFORMAT, "more than %d nodes in a trie", (int)MOST_NODES);
    if (t->n_nodes == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 1 << 9;
        uint32_t *values = realloc(t->values, cap * sizeof(*values));
        if (!values)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for the %zu nodes of a trie", cap);
        t->values = values;
        t->cap = cap;
    }
    t->values[t->n_nodes++] = TRIE_NONE;
    return 0;
}

int trie_put(struct trie *t, const char *s, size_t n, uint32_t value, uint32_t *before,
             struct cairn_error *err)
{
    if (!t->n_nodes && add_node(t, err))
        return -1;
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char byte = (unsigned char)s[i];
        if (2 * t->n_nodes >= t->n_slots && trie_reserve(t, t->n_nodes + 1, err))
            return -1;
        struct trie_edge *e = find_slot(t, node, byte);
        if (!e->to_and_byte) {
            if (add_node(t, err))
                return -1;
            *e = (struct trie_edge){ node, (uint32_t)(t->n_nodes - 1) << 8 | byte };
        }
        node = e->to_and_byte >> 8;
    }
    *before = t->values[node];
    t->values[node] = value;
    return 0;
}

uint32_t trie_next(const struct trie *t, uint32_t node, unsigned char byte)
{
    return t->n_slots ? find_slot(t, node, byte)->to_and_byte >> 8 : 0;
}

uint32_t trie_find(const struct trie *t, const char *s, size_t n)
{
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++)
        if (!(node = trie_next(t, node, (unsigned char)s[i])))
            return TRIE_NONE;
    return t->n_nodes ? t->values[node] : TRIE_NONE;
}

size_t trie_longest(const struct trie *t, const char *s, size_t n, uint32_t *value)
{
    size_t longest = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < n && (node = trie_next(t, node, (unsigned char)s[i])); i++)
        if (t->values[node] != TRIE_NONE) {
            longest = i + 1;
            *value = t->values[node];
        }
    return longest;
}

void trie_release(struct trie *t)
{
    free(t->edges);
    free(t->values);
    *t = (struct trie){ 0 };
}
