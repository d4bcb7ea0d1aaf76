/* SPDX-License-Identifier: Apache-2.0
 * Matrices through the fastest way this device has: own kernels, cuBLASLt, hipBLASLt, rocBLAS, OpenBLAS.
 *
 * The vendors' libraries are opened at run time; one that may end the process (rocBLAS does on a chip it has no
 * files for) is tried in a child first.  Which way is fastest, and which algorithm of cuBLASLt, is measured when a
 * shape is first met and kept in $XDG_CACHE_HOME/cairn/gemm, so that the same machine makes the same choice, and the
 * same bits, again.
 *
 * A library that does bias, GELU, its slope or residual with the product saves a pass over the result; cuBLASLt's bias then has the
 * format of the result.
 *
 * hipBLASLt and rocBLAS have never run here on a real card. */
#ifndef CAIRN_GPU_BLAS_H
#define CAIRN_GPU_BLAS_H

#include "gpu/gpu.h"
#include "gpu/kernels/gemm.h"

struct blas; /* for one device, of one thread */

int blas_open(struct gpu *g, struct blas **out, struct cairn_error *err);
void blas_close(struct blas *b);

/* What gemm.h says, for `batches` matrices.  The first call for a shape takes the time of several. */
int blas_gemm(struct blas *b, struct gpu_stream *s, enum gpu_storage storage, const struct gemm_args *args,
              size_t batches, struct cairn_error *err);

/* c = alpha a b times GELU's slope at slope_of, which is laid out as c: the way back through GELU and the matrix behind it.
 * Rows lie one after the other, and there is nothing else to add; c may not be f32 where the storage is not. */
int blas_gemm_gelu_back(struct blas *b, struct gpu_stream *s, enum gpu_storage storage,
                        const struct gemm_args *args, const void *slope_of, struct cairn_error *err);

/* The ways there are, by number from 0; NULL past the last.  `why` of one that cannot be used says so, else it is
 * empty. */
const char *blas_way(const struct blas *b, size_t i, const char **why);
/* The way that the last product took; NULL before the first. */
const char *blas_last(const struct blas *b);
/* From now on only this way, where it fits; NULL: measure again.  For tests and benchmarks. */
int blas_force(struct blas *b, const char *way, struct cairn_error *err);

#endif
