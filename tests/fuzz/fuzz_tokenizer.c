/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a tokenizer.json: no crash, and with what is accepted a text comes back as it was. */
#include "text/tokenizer.h"

#include "fuzz.h"

static const char text[] = "The stones: it's 12345!\n\n  def f(x): <x> \xc3\xa9\xe6\x97\xa5 \xff\xfe\n"
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

static void look(const struct tokenizer *t)
{
    CLEANUP(token_list_release) struct token_list ids = { 0 };
    CLEANUP(str_release) struct str back = { 0 };
    struct cairn_error err = { 0 };
    size_t n = sizeof(text) - 1;
    FUZZ_REQUIRE(tokenizer_vocab(t) >= 256 && tokenizer_end_of_text(t) < (int64_t)tokenizer_vocab(t));
    FUZZ_REQUIRE(!tokenizer_encode(t, text, n, &ids, &err));
    for (size_t i = 0; i < ids.n; i++)
        FUZZ_REQUIRE(ids.ids[i] < tokenizer_vocab(t));
    FUZZ_REQUIRE(!tokenizer_decode(t, ids.ids, ids.n, &back, &err));
    /* Longer where spaces are put in front. */
    FUZZ_REQUIRE(back.len >= n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(tokenizer_cleanup) struct tokenizer *t = NULL;
    struct cairn_error err = { 0 };
    char *json = fuzz_text(data, size);
    if (tokenizer_parse("fuzz", json, size, &t, &err))
        FUZZ_REQUIRE(err.msg[0] && err.code != CAIRN_OK);
    else
        look(t);
    free(json);
    return 0;
}
