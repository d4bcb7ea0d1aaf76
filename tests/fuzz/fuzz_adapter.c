/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as an adapter_config.json; where they do not begin with a brace, as one of its patterns.  No crash, and what is
 * accepted has a strength. */
#include "tensor/adapter_config.h"

#include "fuzz.h"
#include "tensor/adapter_pattern.h"
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

static void try_pattern(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    struct cairn_error err = { 0 };
    regex_t pattern;
    if (adapter_pattern_make(text, &pattern, &err)) {
        FUZZ_REQUIRE(err.msg[0]);
        return;
    }
    adapter_pattern_fits(&pattern, "model.layers.11.self_attn.q_proj");
    regfree(&pattern);
}

static void try_config(const uint8_t *data, size_t size)
{
    CLEANUP(fd_close) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    CLEANUP(adapter_config_release) struct adapter_config c = { 0 };
    struct cairn_error err = { 0 };
    char path[64];
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (adapter_config_read(&c, path, &err)) {
        FUZZ_REQUIRE(err.msg[0]);
        return;
    }
    uint64_t rank = adapter_config_rank(&c, "model.q");
    FUZZ_REQUIRE(isfinite(adapter_config_scale(&c, adapter_config_alpha(&c, "model.q"), rank ? rank : 1)));
    adapter_config_saves(&c, "model.lm_head");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] == '{')
        try_config(data, size);
    else
        try_pattern(data, size);
    return 0;
}
