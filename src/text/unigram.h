/* SPDX-License-Identifier: Apache-2.0
 * Text to token ids with a unigram model: the tokenizers of T5, umT5, XLM-R and similar models.
 *
 * The same model comes in two files, which are not quite the same tokenizer, and each gives the ids of its own
 * library:
 *   spiece.model     a SentencePiece ModelProto; ids as `sentencepiece` gives them
 *   tokenizer.json   of model type Unigram; ids as `tokenizers` gives them with add_special_tokens=False
 *
 * Any bytes are text.  A byte that is not part of valid UTF-8 is read as U+FFFD, as `sentencepiece` does;
 * `tokenizers` accepts no such text.  Truncation, padding and the post-processor of a tokenizer.json are
 * ignored: no </s> is added.
 *
 * A unigram is immutable; any number of threads may use it. */
#ifndef CAIRN_TEXT_UNIGRAM_H
#define CAIRN_TEXT_UNIGRAM_H

#include "base/error.h"
#include "text/bpe.h"
#include <stddef.h>
#include <stdint.h>

struct unigram;

/* From memory; messages call it `name`. */
int unigram_parse_model(struct unigram **out, const char *name, const void *bytes, size_t n,
                        struct cairn_error *err);
int unigram_parse_json(struct unigram **out, const char *name, const char *json, size_t n,
                       struct cairn_error *err);
/* Either kind of file, told apart by its content, or a folder with one: that of the tokenizer itself, or of a
 * Wan model in the official or the diffusers layout.  If there are both, tokenizer.json is used, since that is
 * what `transformers` opens. */
int unigram_open(struct unigram **out, const char *path, struct cairn_error *err);
void unigram_free(struct unigram *u);
void unigram_cleanup(struct unigram **u); /* for CLEANUP */

uint32_t unigram_vocab(const struct unigram *u);       /* ids are below it */
int64_t unigram_end(const struct unigram *u);          /* </s>; -1: none */
int64_t unigram_unknown(const struct unigram *u);      /* <unk>; -1: none */
const uint64_t *unigram_hash(const struct unigram *u); /* two words; equal hashes give equal ids */

/* Appends the ids of a text. */
int unigram_encode(const struct unigram *u, const char *text, size_t n, struct token_list *out,
                   struct cairn_error *err);

#endif
