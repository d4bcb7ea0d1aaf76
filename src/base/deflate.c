/* SPDX-License-Identifier: Apache-2.0 */
#include "base/deflate.h"

#include "base/cleanup.h"
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE = 1 << 16 }; /* of a gzip file */

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

static void zlib_end(z_stream *z)
{
    inflateEnd(z);
}

int inflate_start(inflate_read *read, void *context, void *to, size_t want, size_t *got, bool *valid,
                  struct cairn_error *err)
{
    CLEANUP(zlib_end) z_stream z = { 0 };
    int r = Z_OK;
    if (inflateInit(&z) != Z_OK)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to unpack %zu bytes", want);
    z.next_out = to;
    z.avail_out = (uInt)want;
    while (z.avail_out && r == Z_OK) {
        const void *bytes;
        size_t n;
        if (read(context, &bytes, &n, err))
            return -1;
        if (!n)
            break;
        z.next_in = (z_const Bytef *)bytes;
        z.avail_in = (uInt)n;
        r = inflate(&z, Z_NO_FLUSH);
    }
    *valid = r == Z_OK || r == Z_STREAM_END;
    *got = want - z.avail_out;
    return 0;
}

static void gz_done(gzFile *f)
{
    if (*f)
        gzclose_r(*f);
}

int inflate_gzip(int fd, const char *path, void (*take)(void *to, const char *bytes, size_t n), void *to,
                 bool *cut, struct cairn_error *err)
{
    char buf[PIECE];
    int n, code = Z_OK;
    CLEANUP(gz_done) gzFile f = gzdopen(fd, "rb");
    if (!f) {
        close(fd);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read %s", path);
    }
    gzbuffer(f, PIECE);
    while ((n = gzread(f, buf, sizeof(buf))) > 0)
        take(to, buf, (size_t)n);
    const char *why = gzerror(f, &code);
    if (code == Z_BUF_ERROR && cut)
        *cut = true;
    if (n == 0 || code == Z_BUF_ERROR)
        return 0;
    if (code == Z_ERRNO)
        return cairn_fail_errno(err, "read %s", path);
    cairn_fail(err, CAIRN_EFORMAT, "%s: damaged gzip file: %s", path, why);
    return cairn_hint(err, "unpack it with gzip -dc as far as possible, and use that file");
}
