/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a tokenizer.json with a unigram model: no crash, and what is accepted encodes any text to ids that it has. */
#include "fuzz_unigram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(unigram_cleanup) struct unigram *u = NULL;
    struct cairn_error err = { 0 };
    char *bytes = fuzz_text(data, size);
    if (unigram_parse_json(&u, "fuzz", bytes, size, &err))
        FUZZ_REQUIRE(err.msg[0] && err.code != CAIRN_OK);
    else
        fuzz_encode(u);
    free(bytes);
    return 0;
}
