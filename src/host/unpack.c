/* SPDX-License-Identifier: Apache-2.0 */
#include "host/unpack.h"

#include "base/deflate.h"
#include <inttypes.h>
#include <stdlib.h>
#include <zstd.h>

enum { CHUNK = 32 * 1024 };

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

struct place {
    const struct unpack *u;
    const struct unpack_block *k;
    uint64_t at;
};

static int read_chunk(void *context, const void **bytes, size_t *n, struct cairn_error *err)
{
    struct place *p = context;
    if (binary_read_some(p->k->b, p->at, p->k->end, p->u->chunk, CHUNK, n, err))
        return -1;
    *bytes = p->u->chunk;
    p->at += *n;
    return 0;
}

static int start_zlib(const struct unpack *u, const struct unpack_block *k, void *to, size_t want,
                      size_t *got, struct cairn_error *err)
{
    struct place p = { u, k, k->at };
    bool valid;
    if (inflate_start(read_chunk, &p, to, want, got, &valid, err))
        return -1;
    return valid ? 0 : damaged(k, "zlib", err);
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
