/* SPDX-License-Identifier: Apache-2.0
 * Splits text into words, as the regular expressions of well-known tokenizers do.  Pairs are merged within a
 * word only.
 *
 * Every character belongs to exactly one word, whatever the bytes. */
#ifndef CAIRN_TEXT_SPLIT_H
#define CAIRN_TEXT_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

enum split_kind {
    SPLIT_GPT2,   /* GPT-2, and Hugging Face's ByteLevel */
    SPLIT_CL100K, /* GPT-4, Llama 3: at most three digits together */
    SPLIT_QWEN2,  /* the same, each digit alone */
    SPLIT_DIGITS, /* each digit alone, all else together */
};

/* Finds the expression of a tokenizer.json; false if it is not one of these. */
bool split_find(const char *pattern, enum split_kind *out);
/* How many bytes the first word of a text has; n > 0. */
size_t split_next(enum split_kind kind, const char *s, size_t n);

/* The last place where a text may be cut in two without other words from any of these expressions; 0 if there is none. */
size_t split_cut(const char *s, size_t n);

#endif
