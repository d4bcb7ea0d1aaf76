/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/libraries.h"

#include "gpu/dl.h"
#include <stdio.h>
#include <stdlib.h>

static const char *const hip[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                   "libamdhip64.so", NULL };
/* ROCm 5 and 6 have the compiler in the runtime as well. */
static const char *const hiprtc[] = { "libhiprtc.so.7",
                                      "libhiprtc.so.6",
                                      "libhiprtc.so.5",
                                      "libhiprtc.so",
                                      "libamdhip64.so.6",
                                      "libamdhip64.so.5",
                                      NULL };
static const char *const hipblaslt[] = { "libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so", NULL };
static const char *const rocblas[] = { "librocblas.so.5", "librocblas.so.4", "librocblas.so.3",
                                       "librocblas.so.0", "librocblas.so",   NULL };
static const char *const nvrtc[] = { "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so",
                                     NULL };
static const char *const cublaslt[] = { "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", NULL };

const char *const *library_names(enum library l)
{
    static const char *const *const names[] = { hip, hiprtc, hipblaslt, rocblas, nvrtc, cublaslt };
    return names[l];
}

const char *library_variable(enum library l)
{
    return l < LIBRARY_NVRTC ? "ROCM_PATH" : "CUDA_HOME";
}

void library_folder(enum library l, const char *root, char *out, size_t size)
{
    const char *otherwise = l < LIBRARY_NVRTC ? "/opt/rocm" : "/usr/local/cuda";
    snprintf(out, size, "%s/%s", root && root[0] ? root : otherwise, l < LIBRARY_NVRTC ? "lib" : "lib64");
}

int library_open(enum library l, void **handle, char *path, size_t size, struct cairn_error *err)
{
    char folder[256];
    library_folder(l, getenv(library_variable(l)), folder, sizeof(folder));
    return dl_open(library_names(l), (const char *const[]){ folder, NULL }, handle, path, size, err);
}
