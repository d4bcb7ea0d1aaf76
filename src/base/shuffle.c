/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shuffle.h"

enum { ROUNDS = 8 };

/* The finalizer of splitmix64. */
static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

uint64_t shuffle_key(uint64_t a, uint64_t b)
{
    return mix(mix(a + 0x9e3779b97f4a7c15u) + b * 0x9e3779b97f4a7c15u);
}

/* A Feistel network on two halves of `half` bits: turns the numbers below 2^(2 half) around among themselves. */
static uint64_t feistel(uint64_t v, unsigned half, uint64_t key)
{
    uint64_t mask = ((uint64_t)1 << half) - 1, left = v >> half, right = v & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ (mix(right + key + round * 0x9e3779b97f4a7c15u) & mask);
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
    /* What falls outside goes round again: it comes back inside, as the network is a permutation. */
    do {
        i = feistel(i, half, key);
    } while (i >= n);
    return i;
}
