/* SPDX-License-Identifier: Apache-2.0
 * What blas_lt.c believes of hipBLASLt against what was read in its headers (hipblaslt.def). */
#include "check.h"
#include "gpu/blas_lt.c"

#define CALL(result, name, args) typedef result type_of_##name args;
#define NUMBER(name, value) enum { name = value };
#include "hipblaslt.def"

#define AS_SAME(field, name, args)                                                                       \
    _Static_assert(                                                                                      \
        __builtin_types_compatible_p(__typeof__(*((struct lt_api *)0)->field), type_of_hipblasLt##name), \
        #name);
LT_SYMBOLS(AS_SAME)

static void numbers_are_those_of_the_header(void)
{
    CHECK_INT(hipblaslt.compute_f32, HIPBLAS_COMPUTE_32F);
    CHECK_INT(hipblaslt.as_it_is, HIPBLAS_OP_N);
    CHECK_INT(hipblaslt.transposed, HIPBLAS_OP_T);
    CHECK_INT(hipblaslt.op_a, HIPBLASLT_MATMUL_DESC_TRANSA);
    CHECK_INT(hipblaslt.op_b, HIPBLASLT_MATMUL_DESC_TRANSB);
    CHECK_INT(hipblaslt.epilogue, HIPBLASLT_MATMUL_DESC_EPILOGUE);
    CHECK_INT(hipblaslt.bias, HIPBLASLT_MATMUL_DESC_BIAS_POINTER);
    CHECK_INT(hipblaslt.bias_type, HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
    CHECK_INT(hipblaslt.aux, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER);
    CHECK_INT(hipblaslt.aux_ld, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD);
    CHECK_INT(hipblaslt.aux_batch, HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE);
    CHECK_INT(EPILOGUE_NONE, HIPBLASLT_EPILOGUE_DEFAULT);
    CHECK_INT(EPILOGUE_BIAS, HIPBLASLT_EPILOGUE_BIAS);
    CHECK_INT(EPILOGUE_GELU, HIPBLASLT_EPILOGUE_GELU);
    CHECK_INT(EPILOGUE_GELU | EPILOGUE_AUX | EPILOGUE_BIAS, HIPBLASLT_EPILOGUE_GELU_AUX_BIAS);
    CHECK_INT(EPILOGUE_SLOPE | EPILOGUE_AUX, HIPBLASLT_EPILOGUE_DGELU);
    CHECK_INT(hipblaslt.batch_count, HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
    CHECK_INT(hipblaslt.batch_stride, HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
    CHECK_INT(hipblaslt.most_workspace, HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
    CHECK_INT(TYPE_F32, HIP_R_32F);
    CHECK_INT(TYPE_F16, HIP_R_16F);
    CHECK_INT(TYPE_BF16, HIP_R_16BF);
}

int main(void)
{
    RUN(numbers_are_those_of_the_header);
    return check_done();
}
