/* SPDX-License-Identifier: Apache-2.0
 * The libraries of GPUs and MPI that cairn opens: the only list of their file names. */
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
    LIBRARY_CUBLASLT,
    LIBRARY_OPEN_MPI,
    LIBRARY_MPICH /* and others with its interface */
};

/* One ROCm: the files that are opened together, so that runtime, compiler and libraries fit each other. */
struct library_set {
    const char *what;                      /* for people: "ROCm 6.4, of PyTorch 2.9.1+rocm6.4" */
    const char *file[LIBRARY_ROCBLAS + 1]; /* paths; NULL: it has none */
};
/* The sets in the order of trial; they must live as long as the process.  After them, or where none is
 * offered, the names are tried: in the loader's places, then in $ROCM_PATH/lib or $CUDA_HOME/lib64, or where
 * those usually are. */
void library_offer(const struct library_set *sets, size_t n);
size_t library_offered(void);
/* From now on ROCm's libraries are those of this set; library_offered(): by their names. */
void library_choose(size_t set);
const struct library_set *library_chosen(void); /* NULL: by their names */
/* The file that library_open will open: "" where that is found out by name. */
const char *library_file(enum library l);

/* path becomes the file that was opened. */
int library_open(enum library l, void **handle, char *path, size_t size, struct cairn_error *err);

#endif
