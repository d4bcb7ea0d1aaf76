/* SPDX-License-Identifier: Apache-2.0
 * A shuffled row of numbers that needs no memory: for each key, permute(0), permute(1) … permute(n-1) are the numbers
 * below n, each once, in an order that looks like chance. */
#ifndef CAIRN_TRAIN_PERMUTE_H
#define CAIRN_TRAIN_PERMUTE_H

#include <stdint.h>

/* i < n. */
uint64_t permute(uint64_t i, uint64_t n, uint64_t key);
/* One key from two numbers, a seed and an epoch. */
uint64_t permute_key(uint64_t a, uint64_t b);

#endif
