/* SPDX-License-Identifier: Apache-2.0
 * A fast 128-bit hash to identify content: the key of a cache, the checksum of a file.  Not cryptographic:
 * collisions can be constructed.
 *
 * The same bytes give the same hash, in whatever pieces they are added. */
#ifndef CAIRN_BASE_HASH_H
#define CAIRN_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash {
    uint64_t lane[4];
    uint64_t length;
    unsigned char rest[32]; /* bytes of an incomplete block */
};

void hash_init(struct hash *h);
void hash_add(struct hash *h, const void *bytes, size_t n);
void hash_add_u64(struct hash *h, uint64_t v);
void hash_add_text(struct hash *h, const char *text); /* with its NUL */
void hash_end(const struct hash *h, uint64_t out[2]);
void hash_text(const uint64_t hash[2], char out[33]);
void hash_end_text(const struct hash *h, char out[33]);
/* One call for short keys in memory. */
uint64_t hash_bytes(const void *bytes, size_t n);

#endif
