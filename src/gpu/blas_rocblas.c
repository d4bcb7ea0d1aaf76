/* SPDX-License-Identifier: Apache-2.0
 * rocBLAS, which aborts the process on a chip it has no files for: it is opened here only after a child
 * process did so without aborting. */
#include "gpu/blas_way.h"
#include "gpu/device_api.h"
#include "gpu/libraries.h"
#include "gpu/watch.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct rocblas {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*gemm)(void *handle, int a_op, int b_op, int m, int n, int k, const void *alpha, const void *a,
                int a_type, int a_ld, int64_t a_stride, const void *b, int b_type, int b_ld, int64_t b_stride,
                const void *beta, const void *c, int c_type, int c_ld, int64_t c_stride, void *d, int d_type,
                int d_ld, int64_t d_stride, int batches, int compute_type, int algorithm, int32_t solution,
                uint32_t flags);
    void *handle;
};
enum { AS_IT_IS = 111, TRANSPOSED = 112, TYPE_F16 = 150, TYPE_F32 = 151, TYPE_BF16 = 168 };

static void close_library(struct gpu *g, void *state)
{
    (void)g;
    struct rocblas *r = state;
    if (r && r->handle)
        r->destroy(r->handle);
    free(r);
}

static int open_library(struct gpu *g, void **state, struct cairn_error *err)
{
    static const struct dl_symbol symbols[] = {
        { "rocblas_create_handle", offsetof(struct rocblas, create), false },
        { "rocblas_destroy_handle", offsetof(struct rocblas, destroy), false },
        { "rocblas_set_stream", offsetof(struct rocblas, set_stream), false },
        { "rocblas_gemm_strided_batched_ex", offsetof(struct rocblas, gemm), false },
    };
    char path[256];
    void *library;
    if (blas_probe(g, "rocblas", err))
        return -1;
    struct rocblas *r = calloc(1, sizeof(*r));
    if (!r)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for rocBLAS");
    if (library_open(LIBRARY_ROCBLAS, &library, path, sizeof(path), err) ||
        dl_resolve(library, path, symbols, ARRAY_LEN(symbols), r, err)) {
        free(r);
        return -1;
    }
    watch_enter(g->info.name, "rocblas");
    int code = r->create(&r->handle);
    watch_leave();
    if (code) {
        close_library(g, r);
        return cairn_fail(err, CAIRN_EDEVICE, "rocblas: %s: status %d", path, code);
    }
    *state = r;
    return 0;
}

static bool fits(const struct gpu *g, const struct blas_call *c)
{
    (void)g;
    const struct gemm_args *a = c->args;
    return a->k > 0 && a->m < INT_MAX && a->n < INT_MAX && a->k < INT_MAX && a->a_stride < INT_MAX &&
           a->b_stride < INT_MAX && a->c_stride < INT_MAX;
}

/* It is column-major, so our rows are its columns: cᵀ = bᵀ aᵀ. */
static int run(struct gpu *g, void *state, const struct blas_call *call, bool *finished,
               struct cairn_error *err)
{
    (void)finished;
    static const int types[GPU_STORAGES] = {
        [GPU_F32] = TYPE_F32, [GPU_BF16] = TYPE_BF16, [GPU_F16] = TYPE_F16
    };
    struct rocblas *r = state;
    const struct gemm_args *a = call->args;
    int type = types[call->storage], c_type = a->c_f32 ? TYPE_F32 : type;
    watch_enter(g->info.name, "rocblas");
    int code = r->set_stream(r->handle, device_queue(g, call->stream));
    if (!code)
        code = r->gemm(r->handle, a->b_transposed ? TRANSPOSED : AS_IT_IS,
                       a->a_transposed ? TRANSPOSED : AS_IT_IS, (int)a->n, (int)a->m, (int)a->k, &a->alpha,
                       a->b, type, (int)a->b_stride, a->b_batch, a->a, type, (int)a->a_stride, a->a_batch,
                       &a->beta, a->c, c_type, (int)a->c_stride, a->c_batch, a->c, c_type, (int)a->c_stride,
                       a->c_batch, (int)call->batches, TYPE_F32, 0, 0, 0);
    watch_leave();
    return code ? cairn_fail(err, CAIRN_EDEVICE, "rocblas: multiply: status %d", code) : 0;
}

const struct blas_way blas_rocblas = {
    .name = "rocblas",
    .api = GPU_API_HIP,
    .open = open_library,
    .close = close_library,
    .fits = fits,
    .run = run,
};
