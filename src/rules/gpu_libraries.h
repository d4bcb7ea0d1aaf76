/* SPDX-License-Identifier: Apache-2.0
 * Which libraries cairn would use on a GPU, derived from the installed files: nothing is run or loaded, so
 * errors that a library reports when it is opened are unknown here. */
#ifndef CAIRN_RULES_GPU_LIBRARIES_H
#define CAIRN_RULES_GPU_LIBRARIES_H

#include "base/arena.h"
#include "host/facts.h"

enum library_use { USE_NO, USE_IF_IT_OPENS, USE_YES };
struct gpu_library {
    const char *purpose; /* "runtime", "compile", "gemm", "collectives" */
    const char *name;    /* "rocblas"; NULL: there is none for this purpose */
    const char *path;    /* NULL: not installed */
    enum library_use use;
    const char *why;
};
struct gpu_libraries {
    struct gpu_library *row;
    size_t n;
};

/* For each GPU of f->gpus; empty if ROCm cannot use the GPU. Memory is the arena's. */
struct gpu_libraries *gpu_libraries_find(const struct facts *f, struct arena *a);
const char *library_use_name(enum library_use use); /* "if it opens" */
/* One sentence. */
const char *gpu_libraries_text(const struct gpu_libraries *l, struct arena *a);

#endif
