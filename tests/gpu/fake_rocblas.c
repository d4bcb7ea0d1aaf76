/* SPDX-License-Identifier: Apache-2.0
 * A librocblas.so.5 for tests: multiplies on the fake HIP, and refuses what the real one does not take. */
#include "fake_gemm.h"

#include <stddef.h>

#define CALL(result, name, args) result name args;
#define NUMBER(name, value)
#include "rocblas.def"
#undef CALL
#undef NUMBER
enum {
#define CALL(result, name, args)
#define NUMBER(name, value) name = value,
#include "rocblas.def"
};

enum { SUCCESS = 0, INVALID_HANDLE = 1, INVALID_VALUE = 11 };
static int handle;

int rocblas_create_handle(void **out)
{
    *out = &handle;
    return SUCCESS;
}

int rocblas_destroy_handle(void *h)
{
    return h == &handle ? SUCCESS : INVALID_HANDLE;
}

int rocblas_set_stream(void *h, void *stream)
{
    return h == &handle && stream ? SUCCESS : INVALID_HANDLE;
}

/* The real one ends the process here when it has no files for the chip. */
void rocblas_initialize(void)
{
    fake_open("rocblas");
}

static bool set_storage(int type, enum gpu_storage *out)
{
    *out = type == rocblas_datatype_f32_r ? GPU_F32 : type == rocblas_datatype_f16_r ? GPU_F16 : GPU_BF16;
    return *out != GPU_BF16 || type == rocblas_datatype_bf16_r;
}

int rocblas_gemm_strided_batched_ex(void *h, int a_op, int b_op, int m, int n, int k, const void *alpha,
                                    const void *a, int a_type, int a_ld, int64_t a_stride, const void *b,
                                    int b_type, int b_ld, int64_t b_stride, const void *beta, const void *c,
                                    int c_type, int c_ld, int64_t c_stride, void *d, int d_type, int d_ld,
                                    int64_t d_stride, int batches, int compute_type, int algorithm,
                                    int32_t solution, uint32_t flags)
{
    struct fake_matrix x = { .transposed = a_op == rocblas_operation_transpose,
                             .ld = a_ld,
                             .stride = a_stride };
    struct fake_matrix y = { .transposed = b_op == rocblas_operation_transpose,
                             .ld = b_ld,
                             .stride = b_stride };
    struct fake_matrix z = { .ld = d_ld, .stride = d_stride, .device = d };
    x.device = (void *)a, y.device = (void *)b;
    if (h != &handle || c != d || c_ld != d_ld || c_stride != d_stride || c_type != d_type ||
        a_type != b_type || !set_storage(a_type, &x.storage) || !set_storage(b_type, &y.storage) ||
        !set_storage(d_type, &z.storage) || compute_type != rocblas_datatype_f32_r ||
        algorithm != rocblas_gemm_algo_standard || solution || flags != rocblas_gemm_flags_none ||
        (!x.transposed && a_op != rocblas_operation_none) ||
        (!y.transposed && b_op != rocblas_operation_none) || a_ld < (x.transposed ? k : m) ||
        b_ld < (y.transposed ? n : k) || d_ld < m)
        return INVALID_VALUE;
    return fake_gemm("rocblas", m, n, k, *(const float *)alpha, x, y, *(const float *)beta, z, batches, NULL)
               ? INVALID_VALUE
               : SUCCESS;
}
