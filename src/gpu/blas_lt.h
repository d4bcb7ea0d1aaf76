/* SPDX-License-Identifier: Apache-2.0
 * The functions of cuBLASLt and hipBLASLt that cairn calls: the two mirror each other.  tests/gpu checks
 * cuBLASLt's prototypes against the toolkit's headers where they are. */
#ifndef CAIRN_GPU_BLAS_LT_H
#define CAIRN_GPU_BLAS_LT_H

#include <stddef.h>
#include <stdint.h>

/* X(field, name after the vendor's prefix, arguments).  Handles and descriptors are pointers, enums are
 * int. */
#define LT_SYMBOLS(X)                                                                                        \
    X(create, Create, (void **))                                                                             \
    X(destroy, Destroy, (void *))                                                                            \
    X(operation_create, MatmulDescCreate, (void **, int, int))                                               \
    X(operation_destroy, MatmulDescDestroy, (void *))                                                        \
    X(operation_set, MatmulDescSetAttribute, (void *, int, const void *, size_t))                            \
    X(layout_create, MatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))                        \
    X(layout_destroy, MatrixLayoutDestroy, (void *))                                                         \
    X(layout_set, MatrixLayoutSetAttribute, (void *, int, const void *, size_t))                             \
    X(preference_create, MatmulPreferenceCreate, (void **))                                                  \
    X(preference_destroy, MatmulPreferenceDestroy, (void *))                                                 \
    X(preference_set, MatmulPreferenceSetAttribute, (void *, int, const void *, size_t))                     \
    X(heuristic, MatmulAlgoGetHeuristic,                                                                     \
      (void *, void *, void *, void *, void *, void *, void *, int, void *, int *))                          \
    X(matmul, Matmul,                                                                                        \
      (void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, \
       void *, void *, void *, const void *, void *, size_t, void *))

struct lt_api {
#define AS_FIELD(field, name, args) int(*field) args;
    LT_SYMBOLS(AS_FIELD)
#undef AS_FIELD
};

#endif
