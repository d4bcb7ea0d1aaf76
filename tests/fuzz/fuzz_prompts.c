/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a prompt file: prompts within the limits, or a message that begins with the file.  The first byte chooses
 * the format. */
#include "video/prompts.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    CLEANUP(mem_free) char *text = fuzz_text(data + 1, size - 1);
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct sample_prompt *p = NULL;
    size_t n = 0;
    const char *path = *data == 'T' ? "f.toml" : *data == 'J' ? "f.json" : "f.txt";
    if (prompts_parse(path, text, size - 1, &a, &p, &n, &err)) {
        FUZZ_REQUIRE(err.code && !strncmp(err.msg, path, strlen(path)));
        return 0;
    }
    FUZZ_REQUIRE(n > 0);
    for (size_t i = 0; i < n; i++)
        FUZZ_REQUIRE(p[i].text && str_is_utf8(p[i].text) && p[i].width <= 16384 && p[i].frames <= 1001 &&
                     p[i].seed >= -1 && p[i].fps >= 0 && p[i].shift >= 0 && p[i].lora_scale >= 0);
    return 0;
}
