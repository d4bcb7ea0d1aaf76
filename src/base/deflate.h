/* SPDX-License-Identifier: Apache-2.0
 * Packing and unpacking with zlib. */
#ifndef CAIRN_BASE_DEFLATE_H
#define CAIRN_BASE_DEFLATE_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A zlib stream of these bytes; the caller frees it. */
int deflate_pack(const void *bytes, size_t n, void **out, size_t *out_n, struct cairn_error *err);
/* CRC-32 as in gzip and PNG; begins with 0, goes on with the value of the bytes before. */
uint32_t deflate_crc(uint32_t crc, const void *bytes, size_t n);

/* The next bytes of a zlib stream; none at its end. */
typedef int inflate_read(void *context, const void **bytes, size_t *n, struct cairn_error *err);
/* The first `want` bytes that a zlib stream unpacks to; *got is less if there are fewer.  *valid: false if it is damaged. */
int inflate_start(inflate_read *read, void *context, void *to, size_t want, size_t *got, bool *valid,
                  struct cairn_error *err);
/* All of a gzip file, or of any other file, unchanged. A truncated one yields what it has, without an error;
 * *cut (or NULL) is then set, and else left alone. Closes fd; path is for messages. */
int inflate_gzip(int fd, const char *path, void (*take)(void *to, const char *bytes, size_t n), void *to,
                 bool *cut, struct cairn_error *err);

#endif
