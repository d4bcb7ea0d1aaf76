/* SPDX-License-Identifier: Apache-2.0
 * Byte pair encoding of one word: bytes become tokens, and the pair of neighbours that was learned first is merged
 * until none is left that was learned; of equal pairs the leftmost goes first.
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

/* Room for so many more. */
int token_list_reserve(struct token_list *l, size_t more, struct cairn_error *err);
void token_list_release(struct token_list *l);

struct bpe_slot {
    uint64_t pair; /* left id << 32 | right id */
    uint32_t rank; /* BPE_NONE: free */
};

struct bpe {
    uint32_t byte_ids[256];
    uint32_t *made; /* by rank: what the pair becomes */
    struct bpe_slot *slots;
    size_t n_merges, mask;
};

/* Room for n merges. */
int bpe_init(struct bpe *b, size_t n, struct cairn_error *err);
/* The next rank.  A pair that is there already gets it too, as it does in `tokenizers`. */
void bpe_add(struct bpe *b, uint32_t left, uint32_t right, uint32_t made);
/* BPE_NONE if the pair was not learned. */
uint32_t bpe_rank(const struct bpe *b, uint32_t left, uint32_t right);
/* Appends the ids of a word; takes n log n time. */
int bpe_encode(const struct bpe *b, const char *word, size_t n, struct token_list *out,
               struct cairn_error *err);
void bpe_release(struct bpe *b);

#endif
