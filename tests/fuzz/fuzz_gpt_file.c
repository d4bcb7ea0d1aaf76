/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a model: a config.json where they begin with a brace, else a file of tensors without one.  No crash, and a
 * shape that is accepted can be opened. */
#include "nn/gpt_file.h"

#include "fuzz.h"
#include "nn/gpt_config.h"
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(fd_close) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    struct cairn_error err = { 0 };
    struct gpt_shape s = { .heads = 1 };
    bool config = size && data[0] == '{';
    int r = config ? gpt_config_read(path, &s, &err) : gpt_file_shape(path, &s, &err);
    if (r) {
        FUZZ_REQUIRE(err.msg[0]);
        return 0;
    }
    FUZZ_REQUIRE(!gpt_shape_check(&s, &err));
    FUZZ_REQUIRE(s.norm_epsilon > 0 && (!s.rope || s.rope_theta > 0));
    return 0;
}
