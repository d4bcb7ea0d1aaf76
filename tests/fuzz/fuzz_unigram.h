/* SPDX-License-Identifier: Apache-2.0
 * What the harnesses of both kinds of unigram files share. */
#ifndef CAIRN_TESTS_FUZZ_UNIGRAM_H
#define CAIRN_TESTS_FUZZ_UNIGRAM_H

#include "fuzz.h"
#include "text/unigram.h"

static inline void fuzz_encode(const struct unigram *u)
{
    static const char text[] =
        " The stones: it's 12\t345!\r\n  <tag> ab</s> \xc3\xa9"
        "e\xcc\x81 \xe6\x97\xa5\xff\xfe\xe2\x96\x81 "
        "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9 \xef\xac\x81\xcc\x81 aaaaaaaaaaaaaaaaaaa <0x41>[X]\xe3\x81";
    CLEANUP(token_list_release) struct token_list ids = { 0 };
    struct cairn_error err = { 0 };
    FUZZ_REQUIRE(unigram_end(u) < (int64_t)unigram_vocab(u) &&
                 unigram_unknown(u) < (int64_t)unigram_vocab(u));
    if (unigram_encode(u, text, sizeof(text) - 1, &ids, &err))
        FUZZ_REQUIRE(err.msg[0] && unigram_unknown(u) < 0);
    for (size_t i = 0; i < ids.n; i++)
        FUZZ_REQUIRE(ids.ids[i] < unigram_vocab(u));
}

#endif
