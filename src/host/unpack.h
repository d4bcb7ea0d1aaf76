/* SPDX-License-Identifier: Apache-2.0
 * Compressed data: the start of a block inside a file (zlib, zstd). */
#ifndef CAIRN_HOST_UNPACK_H
#define CAIRN_HOST_UNPACK_H

#include "base/error.h"
#include "host/binary.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unpack_method { UNPACK_ZLIB, UNPACK_ZSTD };

/* Room to work in, used for one block after the other; zero. */
struct unpack {
    void *zstd, *chunk;
};

/* A block that lies in [at, end) of the file. */
struct unpack_block {
    enum unpack_method method;
    const struct binary *b;
    uint64_t at, end;
};

/* The first `want` bytes of the block; *got is less if the block is shorter. */
int unpack_start(struct unpack *u, const struct unpack_block *k, void *out, size_t want, size_t *got,
                 struct cairn_error *err);
void unpack_release(struct unpack *u);

#endif
