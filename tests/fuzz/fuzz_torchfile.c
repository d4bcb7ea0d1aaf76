/* SPDX-License-Identifier: Apache-2.0
 * A torch file of any bytes: refused with a line, or every tensor of it can be read from its first element to its
 * last, and nothing beyond. */
#include "tensor/torchfile.h"

#include "fuzz.h"
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 16 };

static void check_tensor(const struct torch_file *f, const struct st_tensor *t)
{
    struct cairn_error err = { 0 };
    char into[8];
    FUZZ_REQUIRE(t->name && t->dtype_text && t->rank >= 0 && t->rank <= ST_RANK_MAX);
    FUZZ_REQUIRE(!t->at || !t->bytes || t->at + t->bytes <= f->size);
    FUZZ_REQUIRE(torch_file_read(f, t, t->elements, 1, into, &err));
    if (t->bytes > MOST_BYTES)
        return;
    CLEANUP(mem_free) char *all = malloc(t->bytes + 1);
    FUZZ_REQUIRE(all && !torch_file_read_bytes(f, t, 0, t->bytes, all, &err));
    /* One element alone is the same as that element among all. */
    size_t size = dtype_size(t->dtype);
    for (uint64_t i = 0; size && i < t->elements; i += 1 + t->elements / 16) {
        FUZZ_REQUIRE(!torch_file_read(f, t, i, 1, into, &err));
        FUZZ_REQUIRE(!memcmp(into, all + i * size, size));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    struct torch_file f;
    struct cairn_error err = { 0 };
    CLEANUP(fd_close) int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (torch_file_open(&f, path, &err)) {
        FUZZ_REQUIRE(strstr(err.msg, path) && err.code);
        return 0;
    }
    for (size_t i = 0; i < f.n_tensors; i++)
        check_tensor(&f, &f.tensors[i]);
    torch_file_close(&f);
    return 0;
}
