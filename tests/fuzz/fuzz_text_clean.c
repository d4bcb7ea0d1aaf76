/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a caption: no crash, and what comes out is valid UTF-8 without white space at its ends. */
#include "text/text_clean.h"

#include "fuzz.h"
#include "text/unicode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(str_release) struct str out = { 0 };
    struct cairn_error err = { 0 };
    /* Without the zero byte behind it: a caption is a range of a file. */
    char *text = malloc(size ? size : 1);
    if (!text)
        abort();
    memcpy(text, data, size);
    FUZZ_REQUIRE(!text_clean(text, size, &out, &err));
    FUZZ_REQUIRE(!out.len || (out.s[0] != ' ' && out.s[out.len - 1] != ' '));
    uint32_t c;
    for (size_t at = 0; at < out.len;) {
        at += unicode_next(out.s + at, out.len - at, &c);
        FUZZ_REQUIRE(c != UNICODE_BAD && c != '\n');
    }
    free(text);
    return 0;
}
