/* SPDX-License-Identifier: Apache-2.0
 * Any text as a Range header, for a file of any size: the part lies in the file, and is the one that was asked for. */
#include "web/range.h"

#include "base/cleanup.h"
#include "fuzz.h"
#include <inttypes.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t length = 0, from = 0, n = 0;
    size_t head = size < sizeof(length) ? size : sizeof(length);
    if (head)
        memcpy(&length, data, head);
    CLEANUP(mem_free) char *text = fuzz_text(data + head, size - head);
    for (int i = 0; i < 2; i++, length %= 100) { /* also a small file */
        if (range_parse(text, length, &from, &n) != RANGE_PART)
            continue;
        FUZZ_REQUIRE(n > 0 && from < length && n <= length - from);
        char again[64];
        snprintf(again, sizeof(again), "bytes=%" PRIu64 "-%" PRIu64, from, from + n - 1);
        uint64_t from2 = 0, n2 = 0;
        FUZZ_REQUIRE(range_parse(again, length, &from2, &n2) == RANGE_PART && from2 == from && n2 == n);
    }
    return 0;
}
