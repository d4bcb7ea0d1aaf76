/* SPDX-License-Identifier: Apache-2.0
 * Text to token ids and back.
 *
 * There are two kinds.  Bytes: 256 ids, the bytes themselves.  Byte-level BPE: a Hugging Face tokenizer.json
 * such as those of GPT-2, GPT-4, Llama 3 and Qwen 2, or the result of tokenizer_train.  Both accept any
 * bytes, UTF-8 or not, and decode(encode(x)) is x (with a space in front if the file has add_prefix_space).
 * Added tokens ("<|endoftext|>") are recognized in the text, as `tokenizers` does; none are inserted
 * (add_special_tokens=False).
 *
 * The end-of-text id separates documents.  For bytes it is 0, a byte that does not occur in text.  For a
 * tokenizer.json it is the first of <|endoftext|>, <|end_of_text|>, </s>, <eos> among its added tokens, or
 * none.
 *
 * Not supported: models other than BPE, dropout, byte_fallback, prefixes and suffixes of words, a vocabulary
 * without all 256 bytes, normalizers other than NFC, pre-tokenizers and expressions other than those of
 * split.h and Digits, added tokens that strip the space beside them.  With NFC, encoding fails for text that
 * composition might change.
 *
 * A tokenizer is immutable; any number of threads may use it. */
#ifndef CAIRN_TEXT_TOKENIZER_H
#define CAIRN_TEXT_TOKENIZER_H

#include "base/error.h"
#include "base/str.h"
#include "text/bpe.h"
#include <stddef.h>
#include <stdint.h>

struct tokenizer;

int tokenizer_new_bytes(struct tokenizer **out, struct cairn_error *err);
/* A tokenizer.json, or a folder that holds one. */
int tokenizer_open(const char *path, struct tokenizer **out, struct cairn_error *err);
/* The same, from memory; messages call it `name`. */
int tokenizer_parse(const char *name, const char *json, size_t n, struct tokenizer **out,
                    struct cairn_error *err);
/* Writes a tokenizer.json, which `tokenizers` can open too; reading it gives the same tokenizer. */
int tokenizer_save(const struct tokenizer *t, const char *path, struct cairn_error *err);
void tokenizer_free(struct tokenizer *t);
void tokenizer_cleanup(struct tokenizer **t); /* for CLEANUP */

uint32_t tokenizer_vocab(const struct tokenizer *t);        /* ids are below it */
bool tokenizer_has(const struct tokenizer *t, uint32_t id); /* whether the id is in use */
int64_t tokenizer_end_of_text(const struct tokenizer *t);   /* -1: none */
const uint64_t *tokenizer_hash(const struct tokenizer *t);  /* two words; equal hashes give equal ids */

/* Appends the ids of a text.  Uses several threads if worthwhile; the result does not depend on their
 * number. */
int tokenizer_encode(const struct tokenizer *t, const char *text, size_t n, struct token_list *out,
                     struct cairn_error *err);
/* Appends the text of ids; an unused id is an error. */
int tokenizer_decode(const struct tokenizer *t, const uint32_t *ids, size_t n, struct str *out,
                     struct cairn_error *err);

/* A text in pieces that were cut by split_cut. */
struct tokenizer_piece {
    const char *text;
    size_t n;
    bool begins; /* a document begins here */
    bool ends;   /* and ends here: the end-of-text id follows, if there is one */
};
/* Appends the ids of all pieces in their order, on all cores. */
int tokenizer_encode_pieces(const struct tokenizer *t, const struct tokenizer_piece *pieces, size_t n,
                            struct token_list *out, struct cairn_error *err);

#endif
