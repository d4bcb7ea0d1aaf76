/* SPDX-License-Identifier: Apache-2.0
 * The product that the fake rocBLAS and hipBLASLt share, as BLAS defines it: columns first. */
#ifndef CAIRN_TESTS_GPU_FAKE_GEMM_H
#define CAIRN_TESTS_GPU_FAKE_GEMM_H

#include "gpu/gpu.h"
#include <stdbool.h>
#include <stdint.h>

struct fake_matrix {
    enum gpu_storage storage;
    bool transposed;
    int64_t ld, stride; /* in numbers; stride: to the next of a batch */
    void *device;
};

/* What hipBLASLt does with a product on its way to memory; those without memory are left out. */
struct fake_rest {
    struct fake_matrix from; /* what beta multiplies */
    struct fake_matrix bias; /* m numbers */
    struct fake_matrix aux;  /* what GELU is given is left here, or, for its slope, found here */
    bool gelu, slope;
};

/* c = alpha a b + beta c, m × n, over k; in c's place, unless `rest` (may be NULL) says more.  The library's word in CAIRN_FAKE_HIP (`name`): "fast" does nothing,
 * "slow" waits two milliseconds and does nothing.  0, or 1 when the memory is not the device's. */
int fake_gemm(const char *name, int64_t m, int64_t n, int64_t k, float alpha, struct fake_matrix a,
              struct fake_matrix b, float beta, struct fake_matrix c, int64_t batches,
              const struct fake_rest *rest);
/* "name=abort": ends the process; "name=error": 1. */
int fake_open(const char *name);

#endif
