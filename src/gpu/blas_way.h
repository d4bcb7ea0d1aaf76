/* SPDX-License-Identifier: Apache-2.0
 * A way to multiply matrices, as blas.c sees it. */
#ifndef CAIRN_GPU_BLAS_WAY_H
#define CAIRN_GPU_BLAS_WAY_H

#include "gpu/blas.h"

struct blas_call {
    struct gpu_stream *stream;
    enum gpu_storage storage;
    const struct gemm_args *args;
    size_t batches;
};

struct blas_way {
    const char *name;
    enum gpu_api api;
    bool everywhere; /* on every api */
    bool finishes;   /* does bias, GELU and residual too; for the others a kernel follows */
    int (*open)(struct gpu *g, void **state, struct cairn_error *err); /* NULL: nothing to open */
    void (*close)(struct gpu *g, void *state);
    bool (*fits)(const struct gpu *g, const struct blas_call *c);
    int (*run)(struct gpu *g, void *state, const struct blas_call *c, struct cairn_error *err);
};

extern const struct blas_way blas_cublaslt, blas_hipblaslt, blas_rocblas, blas_openblas;

/* Whether a library survives being opened on this device, tried in a child of its own. */
int blas_probe(const struct gpu *g, const char *library, struct cairn_error *err);

#endif
