/* SPDX-License-Identifier: Apache-2.0
 * A libhipblaslt.so.1 for tests: multiplies on the fake HIP, and refuses what the real one does not take. */
#include "fake_gemm.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define CALL(result, name, args) result name args;
#define NUMBER(name, value)
#include "hipblaslt.def"
#undef CALL
#undef NUMBER
enum {
#define CALL(result, name, args)
#define NUMBER(name, value) name = value,
#include "hipblaslt.def"
};

enum { SUCCESS = 0, INVALID_VALUE = 3, NOT_SUPPORTED = 7 };
enum { ALGORITHM_BYTES = 16 };
static const char algorithm[ALGORITHM_BYTES] = "fake algorithm";
static int handle;

struct operation {
    int32_t op[2]; /* of a and b */
    int32_t epilogue, bias_type;
    void *bias, *aux;
    int64_t aux_ld, aux_batch;
};
struct layout {
    int type;
    uint64_t rows, columns;
    int64_t ld, stride;
    int32_t batches;
};

int hipblasLtCreate(void **out)
{
    *out = &handle;
    return fake_open("hipblaslt");
}

int hipblasLtDestroy(void *h)
{
    return h == &handle ? SUCCESS : INVALID_VALUE;
}

int hipblasLtMatmulDescCreate(void **out, int compute, int scale)
{
    struct operation *o = calloc(1, sizeof(*o));
    if (!o || compute != HIPBLAS_COMPUTE_32F || scale != HIP_R_32F)
        return free(o), INVALID_VALUE;
    o->op[0] = o->op[1] = HIPBLAS_OP_N;
    o->epilogue = HIPBLASLT_EPILOGUE_DEFAULT;
    *out = o;
    return SUCCESS;
}

int hipblasLtMatmulDescDestroy(void *o)
{
    free(o);
    return SUCCESS;
}

int hipblasLtMatmulDescSetAttribute(void *operation, int attribute, const void *value, size_t size)
{
    struct operation *o = operation;
    const struct {
        int attribute;
        void *at;
        size_t size;
    } fields[] = {
        { HIPBLASLT_MATMUL_DESC_TRANSA, &o->op[0], sizeof(o->op[0]) },
        { HIPBLASLT_MATMUL_DESC_TRANSB, &o->op[1], sizeof(o->op[1]) },
        { HIPBLASLT_MATMUL_DESC_EPILOGUE, &o->epilogue, sizeof(o->epilogue) },
        { HIPBLASLT_MATMUL_DESC_BIAS_POINTER, &o->bias, sizeof(o->bias) },
        { HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &o->bias_type, sizeof(o->bias_type) },
        { HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &o->aux, sizeof(o->aux) },
        { HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &o->aux_ld, sizeof(o->aux_ld) },
        { HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &o->aux_batch, sizeof(o->aux_batch) },
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (fields[i].attribute == attribute && fields[i].size == size)
            return memcpy(fields[i].at, value, size), SUCCESS;
    return INVALID_VALUE;
}

/* What the operation must have for its epilogue. */
static bool is_whole(const struct operation *o)
{
    bool bias = o->epilogue & HIPBLASLT_EPILOGUE_BIAS,
         aux = (o->epilogue & HIPBLASLT_EPILOGUE_GELU_AUX) == HIPBLASLT_EPILOGUE_GELU_AUX ||
               o->epilogue == HIPBLASLT_EPILOGUE_DGELU;
    for (int i = 0; i < 2; i++)
        if (o->op[i] != HIPBLAS_OP_N && o->op[i] != HIPBLAS_OP_T)
            return false;
    return (!bias || (o->bias && o->bias_type == HIP_R_32F)) && (!aux || (o->aux && o->aux_ld > 0)) &&
           (o->epilogue == HIPBLASLT_EPILOGUE_DEFAULT || o->epilogue == HIPBLASLT_EPILOGUE_BIAS ||
            o->epilogue == HIPBLASLT_EPILOGUE_GELU || o->epilogue == HIPBLASLT_EPILOGUE_GELU_BIAS ||
            o->epilogue == HIPBLASLT_EPILOGUE_GELU_AUX || o->epilogue == HIPBLASLT_EPILOGUE_GELU_AUX_BIAS ||
            o->epilogue == HIPBLASLT_EPILOGUE_DGELU);
}

int hipblasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    struct layout *l = calloc(1, sizeof(*l));
    if (!l || (type != HIP_R_32F && type != HIP_R_16F && type != HIP_R_16BF) || ld < (int64_t)rows)
        return free(l), INVALID_VALUE;
    *l = (struct layout){ type, rows, columns, ld, 0, 1 };
    *out = l;
    return SUCCESS;
}

int hipblasLtMatrixLayoutDestroy(void *l)
{
    free(l);
    return SUCCESS;
}

int hipblasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t size)
{
    struct layout *l = layout;
    if (attribute == HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT && size == sizeof(l->batches))
        memcpy(&l->batches, value, size);
    else if (attribute == HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && size == sizeof(l->stride))
        memcpy(&l->stride, value, size);
    else
        return INVALID_VALUE;
    return SUCCESS;
}

int hipblasLtMatmulPreferenceCreate(void **out)
{
    *out = calloc(1, sizeof(uint64_t));
    return *out ? SUCCESS : INVALID_VALUE;
}

int hipblasLtMatmulPreferenceDestroy(void *p)
{
    free(p);
    return SUCCESS;
}

int hipblasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t size)
{
    if (attribute != HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES || size != sizeof(uint64_t))
        return INVALID_VALUE;
    memcpy(preference, value, size);
    return SUCCESS;
}

int hipblasLtMatmulAlgoGetHeuristic(void *h, void *operation, void *a, void *b, void *c, void *d,
                                    void *preference, int wanted, void *results, int *found)
{
    if (h != &handle || !operation || !is_whole(operation) || !a || !b || !c || !d || !preference ||
        wanted < 1)
        return INVALID_VALUE;
    memcpy(results, algorithm, sizeof(algorithm));
    *found = 1;
    return SUCCESS;
}

static struct fake_matrix matrix(const struct layout *l, const void *device, int32_t op)
{
    return (struct fake_matrix){
        .storage = l->type == HIP_R_32F   ? GPU_F32
                   : l->type == HIP_R_16F ? GPU_F16
                                          : GPU_BF16,
        .transposed = op == HIPBLAS_OP_T,
        .ld = l->ld,
        .stride = l->stride,
        .device = (void *)device,
    };
}

int hipblasLtMatmul(void *h, void *operation, const void *alpha, const void *a, void *a_layout, const void *b,
                    void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                    const void *chosen, void *workspace, size_t workspace_size, void *stream)
{
    const struct operation *o = operation;
    const struct layout *x = a_layout, *y = b_layout, *z = d_layout;
    bool a_t = o->op[0] == HIPBLAS_OP_T, b_t = o->op[1] == HIPBLAS_OP_T;
    uint64_t k = a_t ? x->rows : x->columns;
    struct fake_rest rest = { .from = matrix(z, c, HIPBLAS_OP_N),
                              .bias = { GPU_F32, false, (int64_t)z->rows, 0, o->bias },
                              .aux = matrix(z, o->aux, HIPBLAS_OP_N),
                              .gelu = o->epilogue & HIPBLASLT_EPILOGUE_GELU,
                              .slope = o->epilogue == HIPBLASLT_EPILOGUE_DGELU };
    rest.aux.ld = o->aux_ld, rest.aux.stride = o->aux_batch;
    if (h != &handle || !is_whole(o) || c_layout != d_layout || !workspace || !workspace_size || !stream ||
        memcmp(chosen, algorithm, sizeof(algorithm)) || z->rows != (a_t ? x->columns : x->rows) ||
        z->columns != (b_t ? y->rows : y->columns) || k != (b_t ? y->columns : y->rows) ||
        x->batches != z->batches || y->batches != z->batches)
        return INVALID_VALUE;
    return fake_gemm("hipblaslt", (int64_t)z->rows, (int64_t)z->columns, (int64_t)k, *(const float *)alpha,
                     matrix(x, a, o->op[0]), matrix(y, b, o->op[1]), *(const float *)beta,
                     matrix(z, d, HIPBLAS_OP_N), z->batches, &rest)
               ? INVALID_VALUE
               : SUCCESS;
}
