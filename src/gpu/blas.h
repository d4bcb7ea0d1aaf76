/* SPDX-License-Identifier: Apache-2.0
 * Matmuls by the fastest implementation that this device has: own kernels, cuBLASLt, hipBLASLt, rocBLAS,
 * OpenBLAS.
 *
 * The vendors' libraries are opened at run time; one that may abort the process (rocBLAS does on a chip it
 * has no files for) is tried in a child process first.  The fastest implementation, and the algorithm of
 * cuBLASLt, is measured when a shape first occurs and cached in $XDG_CACHE_HOME/cairn/gemm, so that the same
 * machine makes the same choice, and computes the same bits, again.
 *
 * A library that fuses bias, GELU, its derivative or residual with the matmul saves a pass over the result;
 * cuBLASLt's bias then has the format of the result.
 *
 * hipBLASLt and rocBLAS have never been run here on a real card. */
#ifndef CAIRN_GPU_BLAS_H
#define CAIRN_GPU_BLAS_H

#include "gpu/gpu.h"
#include "gpu/kernels/gemm.h"

struct blas; /* for one device, of one thread */

int blas_open(struct gpu *g, struct blas **out, struct cairn_error *err);
void blas_close(struct blas *b);
/* The device memory that blas_open takes on a GPU whose vendor's library can be used; 0 on the CPU. */
size_t blas_device_bytes(enum gpu_api api);

/* The gemm of gemm.h, for `batches` matrices.  The first call for a shape takes longer, because it
 * measures. */
int blas_gemm(struct blas *b, struct gpu_stream *s, enum gpu_storage storage, const struct gemm_args *args,
              size_t batches, struct cairn_error *err);

/* c = alpha a b times GELU's derivative at slope_of, which has the layout of c: the backward pass of GELU and
 * the linear layer after it.  Rows are contiguous, and nothing else is added; c may not be f32 if the storage
 * is not. */
int blas_gemm_gelu_back(struct blas *b, struct gpu_stream *s, enum gpu_storage storage,
                        const struct gemm_args *args, const void *slope_of, struct cairn_error *err);

/* The implementations, by index from 0; NULL past the last.  `why` says why one cannot be used, else it is
 * empty. */
const char *blas_way(const struct blas *b, size_t i, const char **why);
/* The implementation of the last matmul; NULL before the first. */
const char *blas_last(const struct blas *b);
/* From now on uses only this implementation, if it supports the call; NULL: measure again.  For tests and
 * benchmarks. */
int blas_force(struct blas *b, const char *way, struct cairn_error *err);
/* From now on takes the first implementation that supports a call: every process with the same device and libraries then
 * computes the same bits, whatever was measured where. */
void blas_fix(struct blas *b);

#endif
