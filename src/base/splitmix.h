/* SPDX-License-Identifier: Apache-2.0
 * splitmix64, a random generator of 64 bits of state: fast, and good enough where nobody guards a secret. */
#ifndef CAIRN_BASE_SPLITMIX_H
#define CAIRN_BASE_SPLITMIX_H

#include <stdint.h>

#define SPLITMIX_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The finalizer: a permutation of the numbers of 64 bits. */
static inline uint64_t splitmix_mix(uint64_t v)
{
    v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
    return v ^ v >> 31;
}

static inline uint64_t splitmix_next(uint64_t *state)
{
    return splitmix_mix(*state += SPLITMIX_STEP);
}

#endif
