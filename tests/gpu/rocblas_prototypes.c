/* SPDX-License-Identifier: Apache-2.0
 * What blas_rocblas.c believes of rocBLAS against what was read in its headers (rocblas.def). */
#include "gpu/blas_rocblas.c"

#define CALL(result, name, args) typedef result type_of_##name args;
#define NUMBER(name, value) enum { name = value };
#include "rocblas.def"

#define SAME(field, name)                                                                                   \
    _Static_assert(__builtin_types_compatible_p(__typeof__(*((struct rocblas *)0)->field), type_of_##name), \
                   #name)
SAME(create, rocblas_create_handle);
SAME(destroy, rocblas_destroy_handle);
SAME(set_stream, rocblas_set_stream);
SAME(gemm, rocblas_gemm_strided_batched_ex);
_Static_assert((int)AS_IT_IS == (int)rocblas_operation_none &&
                   (int)TRANSPOSED == (int)rocblas_operation_transpose,
               "");
_Static_assert((int)TYPE_F16 == (int)rocblas_datatype_f16_r && (int)TYPE_F32 == (int)rocblas_datatype_f32_r &&
                   (int)TYPE_BF16 == (int)rocblas_datatype_bf16_r,
               "");
