/* SPDX-License-Identifier: Apache-2.0
 * SHA-256, where another program expects it; base/hash.h is faster.
 *
 * The same bytes give the same hash, in whatever pieces they are added. */
#ifndef CAIRN_BASE_SHA256_H
#define CAIRN_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_TEXT = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t length;
    unsigned char rest[64]; /* bytes of an incomplete block */
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *bytes, size_t n);
/* In hexadecimal, NUL-terminated. */
void sha256_end_text(struct sha256 *h, char out[SHA256_TEXT + 1]);

#endif
