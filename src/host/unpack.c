/* SPDX-License-Identifier: Apache-2.0 */
#include "host/unpack.h"

#include "base/cleanup.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { CHUNK = 32 * 1024, GZIP_PIECE = 1 << 16 };

static void zlib_end(z_stream *z)
{
    inflateEnd(z);
}

static int damaged(const struct unpack_block *k, const char *what, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "%s: no valid %s data at offset %" PRIu64, k->b->path, what, k->at);
}

static int start_zstd(const struct unpack *u, const struct unpack_block *k, void *to, size_t want,
                      size_t *got, struct cairn_error *err)
{
    ZSTD_DCtx_reset(u->zstd, ZSTD_reset_session_only);
    ZSTD_outBuffer out = { to, want, 0 };
    for (uint64_t at = k->at; out.pos < out.size;) {
        size_t n;
        if (binary_read_some(k->b, at, k->end, u->chunk, CHUNK, &n, err))
            return -1;
        ZSTD_inBuffer in = { u->chunk, n, 0 };
        size_t left = n ? 1 : 0;
        while (in.pos < in.size && out.pos < out.size && left && !ZSTD_isError(left))
            left = ZSTD_decompressStream(u->zstd, &out, &in);
        if (ZSTD_isError(left))
            return damaged(k, "zstd", err);
        if (!left)
            break;
        at += n;
    }
    *got = out.pos;
    return 0;
}

static int start_zlib(const struct unpack *u, const struct unpack_block *k, void *to, size_t want,
                      size_t *got, struct cairn_error *err)
{
    CLEANUP(zlib_end) z_stream z = { 0 };
    if (inflateInit(&z) != Z_OK)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to unpack a part of %s", k->b->path);
    z.next_out = to;
    z.avail_out = (uInt)want;
    int r = Z_OK;
    for (uint64_t at = k->at; z.avail_out && r == Z_OK; at += CHUNK) {
        size_t n;
        if (binary_read_some(k->b, at, k->end, u->chunk, CHUNK, &n, err))
            return -1;
        if (!n)
            break;
        z.next_in = u->chunk;
        z.avail_in = (uInt)n;
        r = inflate(&z, Z_NO_FLUSH);
    }
    if (r != Z_OK && r != Z_STREAM_END)
        return damaged(k, "zlib", err);
    *got = want - z.avail_out;
    return 0;
}

int unpack_start(struct unpack *u, const struct unpack_block *k, void *out, size_t want, size_t *got,
                 struct cairn_error *err)
{
    bool zstd = k->method == UNPACK_ZSTD;
    if (!u->chunk)
        u->chunk = malloc(CHUNK);
    if (!u->zstd && zstd)
        u->zstd = ZSTD_createDCtx();
    if (!u->chunk || (!u->zstd && zstd))
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to unpack a part of %s", k->b->path);
    return (zstd ? start_zstd : start_zlib)(u, k, out, want, got, err);
}

void unpack_release(struct unpack *u)
{
    ZSTD_freeDCtx(u->zstd);
    free(u->chunk);
    *u = (struct unpack){ 0 };
}

static void gz_done(gzFile *f)
{
    if (*f)
        gzclose_r(*f);
}

int unpack_gzip(int fd, const char *path, void (*take)(void *to, const char *bytes, size_t n), void *to,
                bool *cut, struct cairn_error *err)
{
    char buf[GZIP_PIECE];
    int n, code = Z_OK;
    CLEANUP(gz_done) gzFile f = gzdopen(fd, "rb");
    if (!f) {
        close(fd);
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read %s", path);
    }
    gzbuffer(f, GZIP_PIECE);
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
