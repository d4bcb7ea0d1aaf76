/* SPDX-License-Identifier: Apache-2.0
 * Any text as an index of samples: each entry has its place below samples/, and pages together are the whole. */
#include "web/sample_index.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "fuzz.h"

enum { PAGE = 3 };

/* How many samples. */
static size_t read_index(const char *text, int64_t from, int64_t limit)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    struct json *list = json_add_array(top, "samples");
    sample_index_add(text, from, limit, "job-x", list);
    FUZZ_REQUIRE((int64_t)json_length(list) <= limit);
    for (size_t i = 0; i < json_length(list); i++) {
        const struct json *o = json_at(list, i);
        const char *file = json_text(json_get(o, "file")), *path = json_text(json_get(o, "path"));
        FUZZ_REQUIRE(str_eq(json_text(json_get(o, "folder")), "job-x"));
        FUZZ_REQUIRE(file && path && str_starts(path, "samples/"));
        /* Control characters, which no path may have, are replaced. */
        FUZZ_REQUIRE(str_clean_span(file, strlen(file)) < strlen(file) ||
                     str_eq(path + strlen("samples/"), file));
    }
    return json_length(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    size_t lines = 1, n = 0, whole = read_index(text, 0, INT64_MAX);
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    for (size_t from = 0; from < lines; from += PAGE)
        n += read_index(text, (int64_t)from, PAGE);
    FUZZ_REQUIRE(n == whole);
    FUZZ_REQUIRE(!read_index(text, INT64_MAX, PAGE));
    return 0;
}
