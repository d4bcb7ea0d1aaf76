/* SPDX-License-Identifier: Apache-2.0
 * A pseudorandom permutation that needs no memory: for each key, shuffle(0), shuffle(1) … shuffle(n-1) are
 * the integers below n, each once, in random order. */
#ifndef CAIRN_BASE_SHUFFLE_H
#define CAIRN_BASE_SHUFFLE_H

#include <stdint.h>

/* i < n. */
uint64_t shuffle(uint64_t i, uint64_t n, uint64_t key);
/* One key from two numbers, a seed and an epoch. */
uint64_t shuffle_key(uint64_t a, uint64_t b);

#endif
