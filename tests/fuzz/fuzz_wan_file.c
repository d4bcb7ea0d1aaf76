/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a Wan transformer, and as the path of one.  No crash; a shape that is accepted is a good one, and what is
 * refused is refused with a reason. */
#include "nn/wan_kind.h"

#include "fuzz.h"
#include "nn/param_scale.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void try_scales(const char *path)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    struct cairn_error err = { 0 };
    if (source_open(&s, path, &err))
        return;
    bool scaled = param_scale_is_in(&s);
    for (size_t i = 0; i < s.n_tensors; i++) {
        struct param_scale scale;
        float one = 1;
        const struct st_tensor *t = &s.tensors[i];
        if (t->elements && dtype_is_float(t->dtype) && !param_scale_find(&s, t, scaled, &scale, &err))
            param_scale_apply(&s, &scale, t->elements - 1, 1, &one, &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(fd_close) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    char path[64], name[512];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    snprintf(name, sizeof(name), "%.*s", (int)strnlen((const char *)data, size), (const char *)data);
    enum wan_expert expert = wan_expert_by_name(name);
    int version = wan_version_by_name(name);
    FUZZ_REQUIRE(expert <= WAN_EXPERT_HIGH && (!version || version == 21 || version == 22));
    struct cairn_error err = { 0 };
    struct wan_file_info info;
    try_scales(path);
    if (wan_file_read_info(path, 1, &info, &err)) {
        FUZZ_REQUIRE(err.msg[0]);
        return 0;
    }
    FUZZ_REQUIRE(!wan_shape_check(&info.shape, &err));
    struct wan_evidence e = { .path = name, .info = &info, .expert = expert, .expert_by = WAN_BY_NAME };
    struct wan_kind kind;
    CLEANUP(str_release) struct str said = { 0 };
    FUZZ_REQUIRE(!wan_kind_of(&e, &kind, &said, &err));
    wan_kind_say(&kind, &info, &said);
    return 0;
}
