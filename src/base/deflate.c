/* SPDX-License-Identifier: Apache-2.0 */
#include "base/deflate.h"

#include <stdlib.h>
#include <zlib.h>

int deflate_pack(const void *bytes, size_t n, void **out, size_t *out_n, struct cairn_error *err)
{
    uLongf size = compressBound(n);
    CLEANUP(mem_free) void *packed = malloc(size);
    if (!packed || compress2(packed, &size, bytes, n, Z_DEFAULT_COMPRESSION) != Z_OK)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to pack %zu bytes", n);
    *out = TAKE(packed);
    *out_n = size;
    return 0;
}

uint32_t deflate_crc(uint32_t crc, const void *bytes, size_t n)
{
    return (uint32_t)crc32_z(crc, bytes, n);
}
