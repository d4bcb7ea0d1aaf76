/* SPDX-License-Identifier: Apache-2.0
 * Byte pair encoding of one word: bytes become tokens, then the adjacent pair with the lowest merge rank is
 * merged until no known pair is left; of equal pairs the leftmost goes first.
 *
 * Filled once, then read by any number of threads. */
#ifndef CAIRN_TEXT_BPE_H
#define CAIRN_TEXT_BPE_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BPE_NONE 0xffffffffu

/* A growing list of ids; {0} is an empty one. */
struct token_list {
    uint32_t *ids;
    size_t n, cap;
};

/* Reserves capacity for `more` further ids. */
int token_list_reserve(struct token_list *l, size_t more, struct cairn_error *err);
void token_list_release(struct token_list *l);

struct bpe_slot {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank; /* BPE_NONE: free */
};

struct bpe {
    uint32_t byte_ids[256];
    uint32_t *made; /* by rank: the id of the merged pair */
    struct bpe_slot *slots;
    size_t n_merges, mask;
};

/* Allocates for n merges. */
int bpe_init(struct bpe *b, size_t n, struct cairn_error *err);
/* Adds a merge with the next rank.  A pair that exists already gets the new rank, as in `tokenizers`. */
void bpe_add(struct bpe *b, uint32_t left, uint32_t right, uint32_t made);
/* BPE_NONE if there is no merge for the pair. */
uint32_t bpe_rank(const struct bpe *b, uint32_t left, uint32_t right);
/* Appends the ids of a word, in O(n log n). */
int bpe_encode(const struct bpe *b, const char *word, size_t n, struct token_list *out,
               struct cairn_error *err);
void bpe_release(struct bpe *b);

#endif
