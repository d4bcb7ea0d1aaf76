/* SPDX-License-Identifier: Apache-2.0 */
#include "host/binary.h"

#include "os/fault.h"
#include "base/file.h"
#include <inttypes.h>
#include <sys/stat.h>

int binary_init(struct binary *b, int fd, const char *path, struct cairn_error *err)
{
    struct stat st;
    if (fault_hit() || fstat(fd, &st))
        return cairn_fail_errno(err, "stat %s", path);
    *b = (struct binary){ .fd = fd, .path = path, .size = st.st_size > 0 ? (uint64_t)st.st_size : 0 };
    return 0;
}

bool binary_has(const struct binary *b, uint64_t at, uint64_t n)
{
    return at <= b->size && n <= b->size - at;
}

int binary_read(const struct binary *b, uint64_t at, void *buf, size_t n, struct cairn_error *err)
{
    if (!binary_has(b, at, n))
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: want %zu bytes at offset %" PRIu64 ", the file has %" PRIu64, b->path, n, at,
                          b->size);
    return file_read_at(b->fd, b->path, buf, n, at, err);
}

int binary_read_some(const struct binary *b, uint64_t at, uint64_t end, void *buf, size_t n, size_t *got,
                     struct cairn_error *err)
{
    uint64_t stop = end < b->size ? end : b->size;
    uint64_t left = at < stop ? stop - at : 0;
    *got = left < n ? (size_t)left : n;
    return *got ? binary_read(b, at, buf, *got, err) : 0;
}

uint16_t le16(const void *p)
{
    const unsigned char *c = p;
    return (uint16_t)(c[0] | c[1] << 8);
}

uint32_t le32(const void *p)
{
    const unsigned char *c = p;
    return le16(c) | (uint32_t)le16(c + 2) << 16;
}

uint64_t le64(const void *p)
{
    const unsigned char *c = p;
    return le32(c) | (uint64_t)le32(c + 4) << 32;
}
