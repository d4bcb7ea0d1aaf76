/* SPDX-License-Identifier: Apache-2.0
 * The tokenizer for tokens.py.
 *
 *     tokens encode TOKENIZER    texts on stdin, each behind its length (32 bits): a line of ids for each
 *     tokens spaced TOKENIZER    the same with one that adds spaces, so that what is decoded is longer
 *     tokens train VOCAB OUT     a text on stdin; writes tokenizer.json
 *     tokens bytes OUT           the tokenizer of bytes, as tokenizer.json */
#include "text/tokenizer.h"
#include "text/tokenizer_train.h"

#include "base/parse.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const struct cairn_error *err)
{
    fprintf(stderr, "tokens: %s\n", err->msg);
    return 1;
}

static char *read_all(size_t *n)
{
    size_t cap = 1 << 20;
    char *text = malloc(cap);
    *n = 0;
    for (size_t r; text && (r = fread(text + *n, 1, cap - *n, stdin)) > 0;)
        if ((*n += r) == cap)
            text = realloc(text, cap *= 2);
    if (!text)
        abort();
    return text;
}

static int encode_one(const struct tokenizer *t, const char *text, size_t n, bool spaced)
{
    CLEANUP(token_list_release) struct token_list ids = { 0 };
    CLEANUP(str_release) struct str back = { 0 };
    struct cairn_error err = { 0 };
    if (tokenizer_encode(t, text, n, &ids, &err) || tokenizer_decode(t, ids.ids, ids.n, &back, &err))
        return fail(&err);
    if (!spaced && (back.len != n || (n && memcmp(back.s, text, n))))
        return fprintf(stderr, "tokens: decoded text is not what was encoded\n"), 1;
    for (size_t i = 0; i < ids.n; i++)
        printf("%u ", ids.ids[i]);
    putchar('\n');
    return 0;
}

static int encode(const char *path, bool spaced)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    struct cairn_error err = { 0 };
    size_t n;
    CLEANUP(mem_free) char *all = read_all(&n);
    if (tokenizer_open(path, &t, &err))
        return fail(&err);
    for (size_t at = 0; at < n;) {
        uint32_t size;
        memcpy(&size, all + at, 4);
        if (encode_one(t, all + at + 4, size, spaced))
            return 1;
        at += 4 + size;
    }
    return 0;
}

static int train(uint32_t vocab, const char *path)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    CLEANUP(word_counts_cleanup) struct word_counts *w = word_counts_new();
    struct cairn_error err = { 0 };
    size_t n;
    CLEANUP(mem_free) char *text = read_all(&n);
    if (word_counts_add(w, text, n, &err) || tokenizer_train(w, vocab, NULL, &t, &err) ||
        tokenizer_save(t, path, &err))
        return fail(&err);
    return 0;
}

static int bytes(const char *path)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    struct cairn_error err = { 0 };
    return tokenizer_new_bytes(&t, &err) || tokenizer_save(t, path, &err) ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
    uint64_t vocab;
    if (argc == 3 && !strcmp(argv[1], "encode"))
        return encode(argv[2], false);
    if (argc == 3 && !strcmp(argv[1], "spaced"))
        return encode(argv[2], true);
    if (argc == 4 && !strcmp(argv[1], "train") && cairn_parse_u64(argv[2], &vocab))
        return train((uint32_t)vocab, argv[3]);
    if (argc == 3 && !strcmp(argv[1], "bytes"))
        return bytes(argv[2]);
    fputs("usage: tokens encode TOKENIZER | spaced TOKENIZER | train VOCAB OUT | bytes OUT\n", stderr);
    return 2;
}
