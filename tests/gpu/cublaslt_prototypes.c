/* SPDX-License-Identifier: Apache-2.0
 * Compiled where NVIDIA's toolkit is: what blas_lt.h says of cuBLASLt is what its header says.  Calls with the
 * table's types must compile, and its numbers must be the header's. */
#include "gpu/blas_lt.h"

#include <cublasLt.h>

int cublaslt_calls(void **out, void *p, int i, uint64_t u, int64_t l, size_t n, const void *c);
int cublaslt_calls(void **out, void *p, int i, uint64_t u, int64_t l, size_t n, const void *c)
{
    return (int)(cublasLtCreate((cublasLtHandle_t *)out) + cublasLtDestroy(p) +
                 cublasLtMatmulDescCreate((cublasLtMatmulDesc_t *)out, (cublasComputeType_t)i,
                                          (cudaDataType_t)i) +
                 cublasLtMatmulDescDestroy(p) +
                 cublasLtMatmulDescSetAttribute(p, (cublasLtMatmulDescAttributes_t)i, c, n) +
                 cublasLtMatrixLayoutCreate((cublasLtMatrixLayout_t *)out, (cudaDataType)i, u, u, l) +
                 cublasLtMatrixLayoutDestroy(p) +
                 cublasLtMatrixLayoutSetAttribute(p, (cublasLtMatrixLayoutAttribute_t)i, c, n) +
                 cublasLtMatmulPreferenceCreate((cublasLtMatmulPreference_t *)out) +
                 cublasLtMatmulPreferenceDestroy(p) +
                 cublasLtMatmulPreferenceSetAttribute(p, (cublasLtMatmulPreferenceAttributes_t)i, c, n) +
                 cublasLtMatmulAlgoGetHeuristic(p, p, p, p, p, p, p, i, p, &i) +
                 cublasLtMatmul(p, p, c, c, p, c, p, c, c, p, p, p, c, p, n, p));
}

_Static_assert(CUBLAS_COMPUTE_32F == 68 && CUBLAS_OP_N == 0 && CUBLAS_OP_T == 1, "computation");
_Static_assert(CUBLASLT_MATMUL_DESC_TRANSA == 3 && CUBLASLT_MATMUL_DESC_TRANSB == 4, "operation");
_Static_assert(CUBLASLT_MATMUL_DESC_EPILOGUE == 7 && CUBLASLT_MATMUL_DESC_BIAS_POINTER == 8 &&
                   CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE == 26,
               "bias");
_Static_assert(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER == 11 &&
                   CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD == 12 &&
                   CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE == 13,
               "what GELU was given");
_Static_assert(CUBLASLT_EPILOGUE_DEFAULT == 1 && CUBLASLT_EPILOGUE_BIAS == 4 &&
                   CUBLASLT_EPILOGUE_GELU == 32 && CUBLASLT_EPILOGUE_GELU_AUX_BIAS == (4 | 32 | 128) &&
                   CUBLASLT_EPILOGUE_DGELU == (64 | 128),
               "epilogue");
_Static_assert(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == 5 && CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET == 6,
               "layout");
_Static_assert(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES == 1, "preference");
_Static_assert(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == 5 &&
                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == 8,
               "alignment");
_Static_assert(CUDA_R_32F == 0 && CUDA_R_16F == 2 && CUDA_R_16BF == 14, "types");
_Static_assert(sizeof(cublasStatus_t) == sizeof(int) && sizeof(cublasComputeType_t) == sizeof(int), "enums");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, algo) == 0, "the algorithm comes first");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "how far the next answer is");
