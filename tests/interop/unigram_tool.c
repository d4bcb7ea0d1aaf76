/* SPDX-License-Identifier: Apache-2.0
 * The unigram tokenizer for unigram.py.
 *
 *     unigram_tool TOKENIZER    texts on stdin, each behind its length (32 bits): a line of ids for each.
 *                               The first line has the ids of </s> and <unk> and the number of ids. */
#include "text/unigram.h"

#include "base/cleanup.h"
#include <stdio.h>
#include <stdlib.h>

static int fail(const struct cairn_error *err)
{
    fprintf(stderr, "unigram_tool: %s\n", err->msg);
    return 1;
}

static int encode_one(const struct unigram *u, const char *text, size_t n)
{
    CLEANUP(token_list_release) struct token_list ids = { 0 };
    struct cairn_error err = { 0 };
    if (unigram_encode(u, text, n, &ids, &err))
        return fail(&err);
    for (size_t i = 0; i < ids.n; i++)
        printf("%u ", ids.ids[i]);
    putchar('\n');
    return 0;
}

int main(int argc, char **argv)
{
    CLEANUP(unigram_cleanup) struct unigram *u = NULL;
    struct cairn_error err = { 0 };
    if (argc != 2)
        return fputs("usage: unigram_tool TOKENIZER\n", stderr), 2;
    if (unigram_open(&u, argv[1], &err))
        return fail(&err);
    printf("%lld %lld %u\n", (long long)unigram_end(u), (long long)unigram_unknown(u), unigram_vocab(u));
    for (uint32_t n; fread(&n, sizeof(n), 1, stdin) == 1;) {
        CLEANUP(mem_free) char *text = malloc((size_t)n + 1);
        if (!text || fread(text, 1, n, stdin) != n)
            return fputs("unigram_tool: a text is cut off\n", stderr), 1;
        if (encode_one(u, text, n))
            return 1;
    }
    return 0;
}
