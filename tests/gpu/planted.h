/* SPDX-License-Identifier: Apache-2.0
 * Kernels with a planted fault each: the ways in which tests run kernels must find them.  All take the same
 * arguments; without its fault each gives y[i] = x[i] + x[n - 1 - i] for the n = K_WG numbers of its group. */
#ifndef CAIRN_TESTS_GPU_PLANTED_H
#define CAIRN_TESTS_GPU_PLANTED_H

#include "gpu/kernels/types.h"

struct planted_args {
    struct k_fault *fault;
    float *y;
    const float *x;
};

#endif
