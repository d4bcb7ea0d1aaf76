/* SPDX-License-Identifier: Apache-2.0
 * An implementation of matmul, as blas.c sees it. */
#ifndef CAIRN_GPU_BLAS_WAY_H
#define CAIRN_GPU_BLAS_WAY_H

#include "gpu/blas.h"

struct blas_call {
    struct gpu_stream *stream;
    enum gpu_storage storage;
    const struct gemm_args *args;
    size_t batches;
    const void *slope_of; /* of blas_gemm_gelu_back; else NULL */
    int variant;          /* of a way that has several, from 0 */
};

struct blas_way {
    const char *name;
    enum gpu_api api;
    bool everywhere; /* on every api */
    bool finishes;   /* always does bias, GELU and residual too, but never GELU's slope */
    int (*open)(struct gpu *g, void **state, struct cairn_error *err); /* NULL: nothing to open */
    void (*close)(struct gpu *g, void *state);
    bool (*fits)(const struct gpu *g, const struct blas_call *c);
    int (*variants)(struct gpu *g, void *state, const struct blas_call *c); /* how many; NULL: one */
    /* *finished, as `finishes` says before: the rest is done too; else a kernel follows. */
    int (*run)(struct gpu *g, void *state, const struct blas_call *c, bool *finished,
               struct cairn_error *err);
};

/* What all of a call's matrices are aligned to, in bytes, up to BLAS_ALIGNED: what an allocation has. */
enum { BLAS_ALIGNED = 256 };
size_t blas_alignment(const struct blas_call *c);

extern const struct blas_way blas_cublaslt, blas_hipblaslt, blas_rocblas, blas_openblas;

/* Whether a library can be opened on this device without aborting, tried in a child process. */
int blas_probe(const struct gpu *g, const char *library, struct cairn_error *err);

#endif
