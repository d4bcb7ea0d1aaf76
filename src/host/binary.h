/* SPDX-License-Identifier: Apache-2.0
 * A file of any size, read by position and never trusted.
 *
 * The file descriptor and the path belong to the caller.  A read past the end is a format error that names
 * the file; nothing is ever read that the file does not have. */
#ifndef CAIRN_HOST_BINARY_H
#define CAIRN_HOST_BINARY_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct binary {
    int fd;
    const char *path; /* for messages */
    uint64_t size;
};

int binary_init(struct binary *b, int fd, const char *path, struct cairn_error *err);
/* Exactly n bytes, or an error. */
int binary_read(const struct binary *b, uint64_t at, void *buf, size_t n, struct cairn_error *err);
/* As many of n bytes as there are before `end`, which is at most the file's size; *got may be 0. */
int binary_read_some(const struct binary *b, uint64_t at, uint64_t end, void *buf, size_t n, size_t *got,
                     struct cairn_error *err);
/* Does [at, at + n) lie in the file?  Safe for any numbers. */
bool binary_has(const struct binary *b, uint64_t at, uint64_t n);

/* Little-endian numbers at any address. */
uint16_t le16(const void *p);
uint32_t le32(const void *p);
uint64_t le64(const void *p);

#endif
