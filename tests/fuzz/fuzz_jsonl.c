/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a .jsonl: no crash, whole documents only, and the hash is that of the file. */
#include "text/text_source.h"

#include "fuzz.h"
#include <sys/mman.h>
#include <unistd.h>

static int note(void *context, const struct text_source_part *part, struct cairn_error *err)
{
    (void)err;
    FUZZ_REQUIRE(part->n && part->begins && part->ends);
    *(size_t *)context += part->n;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(fd_close) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct text_source_file file = { path, true, size };
    struct text_source s = { .path = path, .files = &file, .n_files = 1, .bytes = size };
    struct cairn_error err = { 0 };
    uint64_t before[2], now[2];
    size_t total = 0;
    FUZZ_REQUIRE(!text_source_hash(&s, before, NULL, &err));
    if (text_source_read(&s, "text", note, &total, now, NULL, &err)) {
        FUZZ_REQUIRE(err.msg[0] && err.code != CAIRN_OK);
        return 0;
    }
    FUZZ_REQUIRE(!memcmp(before, now, sizeof(now)) && total <= size);
    return 0;
}
