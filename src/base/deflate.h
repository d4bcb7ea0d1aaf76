/* SPDX-License-Identifier: Apache-2.0
 * Packing with zlib's deflate.  host/unpack.h unpacks. */
#ifndef CAIRN_BASE_DEFLATE_H
#define CAIRN_BASE_DEFLATE_H

#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* A zlib stream of these bytes; the caller frees it. */
int deflate_pack(const void *bytes, size_t n, void **out, size_t *out_n, struct cairn_error *err);
/* CRC-32 as in gzip and PNG; begins with 0, goes on with the value of the bytes before. */
uint32_t deflate_crc(uint32_t crc, const void *bytes, size_t n);

#endif
