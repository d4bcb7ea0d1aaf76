/* SPDX-License-Identifier: Apache-2.0
 * A set of byte strings, each with a number, that is searched from the first byte on: all strings that a text
 * begins with are found in one walk. */
#ifndef CAIRN_TEXT_TRIE_H
#define CAIRN_TEXT_TRIE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

#define TRIE_NONE 0xffffffffu

/* An edge from a node by a byte. */
struct trie_edge {
    uint32_t from;
    uint32_t to_and_byte; /* node << 8 | byte; 0: a free slot, since no edge leads to the root */
};

/* {0} is an empty trie. */
struct trie {
    struct trie_edge *edges; /* by their hash */
    size_t n_slots;
    uint32_t *values; /* by node; the root is 0 */
    size_t n_nodes, cap;
};

/* Prepares for about this many bytes that differ; a hint, by which a large trie is made faster. */
int trie_reserve(struct trie *t, size_t bytes, struct cairn_error *err);
/* Sets the number of a string and returns the earlier one in *before, TRIE_NONE if it is new. */
int trie_put(struct trie *t, const char *s, size_t n, uint32_t value, uint32_t *before,
             struct cairn_error *err);
/* The node after this one and byte; 0: there is none. */
uint32_t trie_next(const struct trie *t, uint32_t node, unsigned char byte);
/* The number of a string; TRIE_NONE if it is not there. */
uint32_t trie_find(const struct trie *t, const char *s, size_t n);
/* The bytes of the longest string that s begins with, and its number; 0 if there is none. */
size_t trie_longest(const struct trie *t, const char *s, size_t n, uint32_t *value);
void trie_release(struct trie *t);

#endif
