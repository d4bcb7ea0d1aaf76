/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shuffle.h"

#include "base/splitmix.h"

enum { ROUNDS = 8 };

uint64_t shuffle_key(uint64_t a, uint64_t b)
{
    return splitmix_mix(splitmix_mix(a + SPLITMIX_STEP) + b * SPLITMIX_STEP);
}

/* A Feistel network on two halves of `half` bits: a permutation of the integers below 2^(2 half). */
static uint64_t feistel(uint64_t v, unsigned half, uint64_t key)
{
    uint64_t mask = ((uint64_t)1 << half) - 1, left = v >> half, right = v & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ (splitmix_mix(right + key + round * SPLITMIX_STEP) & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

uint64_t shuffle(uint64_t i, uint64_t n, uint64_t key)
{
    unsigned half = 1;
    while (half < 32 && (uint64_t)1 << (2 * half) < n)
        half++;
    /* Cycle walking: a value outside is permuted again until it is inside. */
    do {
        i = feistel(i, half, key);
    } while (i >= n);
    return i;
}
