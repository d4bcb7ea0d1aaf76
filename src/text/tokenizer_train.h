/* SPDX-License-Identifier: Apache-2.0
 * Trains a byte-level BPE tokenizer: words split as in GPT-2, id 0 <|endoftext|>, then the 256 bytes, then
 * the merged pairs in order.
 *
 * The most frequent pair is merged first, of equal ones that with the smaller ids, so that the same text
 * always gives the same tokenizer.  Pairs that occur only once are not merged: a small text gives fewer
 * tokens than requested. */
#ifndef CAIRN_TEXT_TOKENIZER_TRAIN_H
#define CAIRN_TEXT_TOKENIZER_TRAIN_H

#include "text/tokenizer.h"
#include <signal.h>

enum { TOKENIZER_LEAST_VOCAB = 257 };

struct word_counts;

struct word_counts *word_counts_new(void);
/* Text is a document, or a part that was cut by split_cut. */
int word_counts_add(struct word_counts *w, const char *text, size_t n, struct cairn_error *err);
void word_counts_cleanup(struct word_counts **w); /* for CLEANUP */

/* Fails when *stop is set; stop may be NULL. */
int tokenizer_train(const struct word_counts *w, uint32_t vocab, const volatile sig_atomic_t *stop,
                    struct tokenizer **out, struct cairn_error *err);

#endif
