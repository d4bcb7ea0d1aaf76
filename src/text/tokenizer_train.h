/* SPDX-License-Identifier: Apache-2.0
 * Learns a byte-level BPE tokenizer from text: GPT-2's words, id 0 <|endoftext|>, then the 256 bytes, then the pairs in
 * the order in which they were learned.
 *
 * The most frequent pair goes first, of equal ones that with the smaller ids, so that the same text always gives the
 * same tokenizer.  Pairs that were seen once are not learned: a small text gives fewer tokens than were asked for. */
#ifndef CAIRN_TEXT_TOKENIZER_TRAIN_H
#define CAIRN_TEXT_TOKENIZER_TRAIN_H

#include "text/tokenizer.h"
#include <signal.h>

enum { TOKENIZER_LEAST_VOCAB = 257 };

struct word_counts;

struct word_counts *word_counts_new(void);
/* Text is a document, or a part that was cut by split_cut. */
int word_counts_add(struct word_counts *w, const char *text, size_t n, struct cairn_error *err);
void word_counts_free(struct word_counts *w);
void word_counts_cleanup(struct word_counts **w); /* for CLEANUP */

/* *stop ends it, with an error; it may be NULL. */
int tokenizer_train(const struct word_counts *w, uint32_t vocab, const volatile sig_atomic_t *stop,
                    struct tokenizer **out, struct cairn_error *err);

#endif
