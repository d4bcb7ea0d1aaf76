/* SPDX-License-Identifier: Apache-2.0
 * The vendors' libraries that cairn opens: the only list of the names of their files. */
#ifndef CAIRN_GPU_LIBRARIES_H
#define CAIRN_GPU_LIBRARIES_H

#include "base/error.h"
#include <stddef.h>

enum library {
    LIBRARY_HIP,
    LIBRARY_HIPRTC,
    LIBRARY_HIPBLASLT,
    LIBRARY_ROCBLAS,
    LIBRARY_NVRTC,
    LIBRARY_CUBLASLT
};

/* Names in the order of trial, NULL at the end. */
const char *const *library_names(enum library l);
/* Where each name is tried after the loader's own places: "$ROCM_PATH/lib", "$CUDA_HOME/lib64", or where they are when
 * the variable (`root` is its value; may be NULL) is not set. */
void library_folder(enum library l, const char *root, char *out, size_t size);
const char *library_variable(enum library l); /* "ROCM_PATH" */
/* path becomes the file that was opened. */
int library_open(enum library l, void **handle, char *path, size_t size, struct cairn_error *err);

#endif
