/* SPDX-License-Identifier: Apache-2.0
 * Kernels whose work-items of a phase run in an order that is told (K_ORDER in the prelude): what they do to each other
 * changes with it. */
#ifndef CAIRN_TESTS_GPU_ORDER_H
#define CAIRN_TESTS_GPU_ORDER_H

#include <stdbool.h>

/* "forward", "reversed" or "strided"; false: there is no such order. */
bool k_order_set(const char *name);

/* What the prelude reads: work-item i of a phase is k_first + i * k_step, modulo the group, which is a power of two. */
extern int k_first, k_step;

#endif
