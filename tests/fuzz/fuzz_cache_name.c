/* SPDX-License-Identifier: Apache-2.0
 * Any text as the name of a cache: what is understood has all its parts within the name, in order. */
#include "video/cache_name.h"

#include "base/cleanup.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *name = fuzz_text(data, size);
    struct cache_name n;
    if (!cache_name_parse(name, &n))
        return 0;
    size_t len = strlen(name);
    FUZZ_REQUIRE(n.stem > 0 && n.clip_stem < n.stem && name[n.stem] == '_');
    FUZZ_REQUIRE(!n.clip_stem || name[n.clip_stem] == '_');
    FUZZ_REQUIRE(n.arch > name + n.stem && n.arch_len > 0 && n.arch[-1] == '_');
    FUZZ_REQUIRE((size_t)(n.arch - name) + n.arch_len + strlen(".safetensors") == len);
    FUZZ_REQUIRE(!memchr(n.arch, '_', n.arch_len));
    cache_name_is_wan(&n);
    return 0;
}
