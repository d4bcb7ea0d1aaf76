/* SPDX-License-Identifier: Apache-2.0
 * The fields of a unigram: filled by unigram_model.c and unigram_json.c, used by unigram.c, unigram_spm.c and
 * unigram_hf.c. */
#ifndef CAIRN_TEXT_UNIGRAM_PARTS_H
#define CAIRN_TEXT_UNIGRAM_PARTS_H

#include "base/str.h"
#include "text/charsmap.h"
#include "text/trie.h"
#include "text/unigram.h"
#include <stdbool.h>

/* The numbers are those of the file. */
enum unigram_kind {
    UNIGRAM_NORMAL = 1,
    UNIGRAM_UNKNOWN = 2,
    UNIGRAM_CONTROL = 3,
    UNIGRAM_USER = 4,
    UNIGRAM_UNUSED = 5,
    UNIGRAM_BYTE = 6,
};

/* What SentencePiece does with a text before the model sees it. */
struct unigram_spm {
    struct charsmap map;
    struct trie user; /* user-defined symbols, which are not normalized */
    bool dummy_prefix, remove_extra_spaces, escape_spaces, space_is_suffix;
    float max_score;
};

enum unigram_change {
    CHANGE_PRECOMPILED,
    CHANGE_REPLACE,
    CHANGE_STRIP,
    CHANGE_PREPEND,
    CHANGE_NMT,
    CHANGE_LOWERCASE,
    CHANGE_NFC,
    CHANGE_NFD,
    CHANGE_NFKC,
    CHANGE_NFKD,
};

/* A normalizer of a tokenizer.json. */
struct unigram_normalizer {
    enum unigram_change change;
    struct charsmap map;
    bool left, right;         /* CHANGE_STRIP */
    struct str pattern, with; /* CHANGE_REPLACE; `with` also of CHANGE_PREPEND */
    size_t least;             /* CHANGE_REPLACE: 0: the pattern is a text, else this many of its character */
    bool any_space;           /* CHANGE_REPLACE: white space instead of the pattern */
};

enum unigram_prefix { PREFIX_NEVER, PREFIX_FIRST, PREFIX_ALWAYS };

/* A pre-tokenizer of a tokenizer.json. */
struct unigram_splitter {
    bool metaspace; /* otherwise WhitespaceSplit */
    bool split;
    enum unigram_prefix prefix;
    char with[5]; /* the character that replaces a space */
};

/* A token that is recognized in the text before the model sees it. */
struct unigram_added {
    uint32_t id;
    bool single_word, left, right, normalized;
    struct str text;
};

struct unigram {
    bool json; /* the rules of `tokenizers` */
    struct trie trie;
    double *scores;  /* by id */
    uint8_t *kinds;  /* by id */
    size_t n_pieces; /* without added tokens */
    uint32_t vocab;
    int64_t unknown, end;
    double unknown_score;
    bool byte_fallback;
    uint32_t byte_ids[256]; /* if byte_fallback; TRIE_NONE: none */
    struct unigram_spm spm;
    struct unigram_normalizer *normalizers;
    size_t n_normalizers;
    struct unigram_splitter *splitters;
    size_t n_splitters;
    struct unigram_added *added;
    size_t n_added;
    struct trie added_trie[2]; /* by `normalized`: the number is the index in `added` */
    uint64_t hash[2];
};

/* The best way to a place in the text. */
struct unigram_node {
    double score;
    uint32_t from; /* TRIE_NONE: not reached */
    uint32_t id;
};

/* A text on its way to ids.  {.u = …, .out = …} is a new one. */
struct unigram_work {
    const struct unigram *u;
    struct token_list *out;
    struct unigram_node *nodes;
    size_t n_nodes;
};
void unigram_work_release(struct unigram_work *w);

/* Memory for n pieces; unknown and end are not known yet. */
int unigram_new(struct unigram **out, size_t n, struct cairn_error *err);
/* Sets the hash: of the library whose ids it gives, and of the file's bytes. */
void unigram_identify(struct unigram *u, const char *library, const void *bytes, size_t n);
/* Finds the best path through a normalized text and appends its ids. */
int unigram_encode_word(struct unigram_work *w, const char *s, size_t n, struct cairn_error *err);
/* The text as the model wants it. */
void unigram_spm_normalize(const struct unigram *u, const char *s, size_t n, struct str *out);
int unigram_hf_encode(struct unigram_work *w, const char *s, size_t n, struct cairn_error *err);
/* What the normalizers of a tokenizer.json make of a text.  *first is the number of leading bytes that stem
 * from the first character of the whole text. */
void unigram_hf_normalize(const struct unigram *u, const char *s, size_t n, struct str *out, size_t *first);
/* Moves the vocabulary of a tokenizer.json into a new unigram; *rest is the file without it. */
int unigram_read_vocab(struct unigram **out, const char *json, size_t n, struct str *rest,
                       struct cairn_error *err);

#endif
