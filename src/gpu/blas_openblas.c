/* SPDX-License-Identifier: Apache-2.0
 * The CPU's f32 matrices through OpenBLAS, where it is installed. */
#include "gpu/blas_way.h"

#include "gpu/dl.h"
#include <limits.h>
#include <stdlib.h>

struct openblas {
    void (*sgemm)(int order, int a_op, int b_op, int m, int n, int k, float alpha, const float *a, int a_ld,
                  const float *b, int b_ld, float beta, float *c, int c_ld);
};
enum { ROWS_FIRST = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

static int open_library(struct gpu *g, void **state, struct cairn_error *err)
{
    (void)g;
    static const char *const names[] = { "libopenblas.so.0", NULL };
    static const struct dl_symbol symbols[] = { { "cblas_sgemm", offsetof(struct openblas, sgemm), false } };
    char path[256];
    void *library;
    struct openblas api;
    if (dl_open(names, NULL, &library, path, sizeof(path), err) ||
        dl_resolve(library, path, symbols, ARRAY_LEN(symbols), &api, err))
        return -1;
    struct openblas *o = malloc(sizeof(*o));
    if (!o)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for OpenBLAS");
    *o = api;
    *state = o;
    return 0;
}

static void close_library(struct gpu *g, void *state)
{
    (void)g;
    free(state);
}

static bool fits(const struct gpu *g, const struct blas_call *c)
{
    (void)g;
    const struct gemm_args *a = c->args;
    return c->storage == GPU_F32 && a->k > 0 && a->m < INT_MAX && a->n < INT_MAX && a->k < INT_MAX &&
           a->a_stride < INT_MAX && a->b_stride < INT_MAX && a->c_stride < INT_MAX;
}

static int run(struct gpu *g, void *state, const struct blas_call *c, bool *finished, struct cairn_error *err)
{
    (void)g, (void)finished, (void)err;
    const struct openblas *o = state;
    const struct gemm_args *a = c->args;
    for (size_t i = 0; i < c->batches; i++)
        o->sgemm(ROWS_FIRST, a->a_transposed ? TRANSPOSED : AS_IT_IS, a->b_transposed ? TRANSPOSED : AS_IT_IS,
                 (int)a->m, (int)a->n, (int)a->k, a->alpha, (const float *)a->a + (k_i64)i * a->a_batch,
                 (int)a->a_stride, (const float *)a->b + (k_i64)i * a->b_batch, (int)a->b_stride, a->beta,
                 (float *)a->c + (k_i64)i * a->c_batch, (int)a->c_stride);
    return 0;
}

const struct blas_way blas_openblas = {
    .name = "openblas",
    .api = GPU_API_HOST,
    .open = open_library,
    .close = close_library,
    .fits = fits,
    .run = run,
};
