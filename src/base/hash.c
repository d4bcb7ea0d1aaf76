/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <stdio.h>
#include <string.h>

/* Odd constants without a pattern: the fractions of square roots of primes. */
static const uint64_t odd[] = { 0x6a09e667f3bcc909, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                0xa54ff53a5f1d36f1 };

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t word_at(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static uint64_t turn(uint64_t v)
{
    return v << 29 | v >> 35;
}

/* Each step is invertible, so no lane loses input. */
static void add_block(struct hash *h, const unsigned char *p)
{
    for (int i = 0; i < 4; i++)
        h->lane[i] = turn((h->lane[i] ^ word_at(p + 8 * i)) * odd[i]);
}

void hash_init(struct hash *h)
{
    *h = (struct hash){ .lane = { odd[3], odd[2], odd[1], odd[0] } };
}

void hash_add(struct hash *h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t have = h->length % 32;
    h->length += n;
    if (have) {
        size_t take = n < 32 - have ? n : 32 - have;
        memcpy(h->rest + have, p, take);
        p += take;
        n -= take;
        if (have + take < 32)
            return;
        add_block(h, h->rest);
    }
    for (; n >= 32; p += 32, n -= 32)
        add_block(h, p);
    if (n)
        memcpy(h->rest, p, n);
}

void hash_add_u64(struct hash *h, uint64_t v)
{
    hash_add(h, &v, sizeof(v));
}

void hash_add_text(struct hash *h, const char *text)
{
    hash_add(h, text, strlen(text) + 1);
}

void hash_end(const struct hash *h, uint64_t out[2])
{
    struct hash e = *h;
    memset(e.rest + e.length % 32, 0, 32 - e.length % 32);
    add_block(&e, e.rest);
    uint64_t a = e.length, b = ~e.length;
    for (int i = 0; i < 4; i++) {
        a = fold(a ^ e.lane[i], odd[i]) + e.lane[(i + 1) % 4];
        b = fold(b ^ e.lane[3 - i], odd[(i + 1) % 4]) + e.lane[i];
    }
    out[0] = fold(a, odd[0]) ^ b;
    out[1] = fold(b, odd[1]) ^ a;
}

void hash_text(const uint64_t hash[2], char out[33])
{
    snprintf(out, 33, "%016llx%016llx", (unsigned long long)hash[0], (unsigned long long)hash[1]);
}

void hash_end_text(const struct hash *h, char out[33])
{
    uint64_t end[2];
    hash_end(h, end);
    hash_text(end, out);
}

uint64_t hash_bytes(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t h = n * odd[0];
    for (; n >= 8; p += 8, n -= 8)
        h = fold(h ^ word_at(p), odd[1]);
    uint64_t last = 0;
    memcpy(&last, p, n);
    h = fold(h ^ last, odd[2]);
    return fold(h, odd[3]);
}
