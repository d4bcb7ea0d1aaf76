/* SPDX-License-Identifier: Apache-2.0
 * The fields of a tokenizer: filled by tokenizer_json.c, used by tokenizer.c. */
#ifndef CAIRN_TEXT_TOKENIZER_PARTS_H
#define CAIRN_TEXT_TOKENIZER_PARTS_H

#include "text/split.h"
#include "text/tokenizer.h"
#include <stdbool.h>

enum { TOKENIZER_STEPS = 4 };

/* The bytes of an id: a range of the text of all ids. */
struct token_text {
    uint32_t at, n; /* n 0: the id is not in use */
};

/* A token that is recognized in the text before it is split. */
struct added_token {
    uint32_t id;
    bool normalized; /* searched after the others, in the text between them */
};

struct tokenizer {
    bool bytes; /* ids are bytes */
    bool nfc, prefix_space;
    bool whole_words; /* a word that is a token is not split (ignore_merges) */
    enum split_kind steps[TOKENIZER_STEPS];
    int n_steps;
    struct bpe bpe;
    uint32_t vocab;
    int64_t end_of_text;
    struct token_text *tokens; /* by id */
    struct str text;
    uint32_t *words; /* ids by the hash of their bytes, BPE_NONE for free; NULL unless whole_words */
    size_t words_mask;
    struct added_token *added; /* longest first */
    size_t n_added;
    bool added_any[2];        /* by their `normalized` */
    bool added_begin[2][256]; /* bytes that they begin with */
    struct str json;
    uint64_t hash[2];
};

/* The character that encodes a byte in the names of tokens, and back; -1 if it encodes none. */
uint32_t tokenizer_byte_char(unsigned char byte);
int tokenizer_char_byte(uint32_t c);

#endif
