/* SPDX-License-Identifier: Apache-2.0
 * Matmul on the CPU with packed panels (cpu_tile.h), compiled for each format and instruction set.  Sums run
 * over k in order, GEMM_CPU_DEPTH at a time, so that the bits depend only on the shape, never on threads or
 * tiles. */
#ifndef CAIRN_GPU_GEMM_CPU_H
#define CAIRN_GPU_GEMM_CPU_H

#include "gpu/gpu.h"
#include "gpu/kernel_rows.h"
#include "gpu/kernels/gemm.h"

enum { GEMM_CPU_DEPTH = 192, GEMM_CPU_ROWS = 192, GEMM_CPU_COLUMNS = 192 /* of a tile of c */ };

/* What one thread does at a time: the result's rows and columns from row, column. */
struct gemm_cpu_tile {
    const struct gemm_args *args;
    size_t batch, row, column, rows, columns;
    const float *a, *b; /* their panels */
};

struct gemm_cpu {
    size_t rows, columns; /* of a panel */
    /* `n` rows of a from `row`, or columns of b. */
    void (*pack_a)(const struct gemm_args *args, size_t batch, size_t row, size_t n, float *panel);
    void (*pack_b)(const struct gemm_args *args, size_t batch, size_t column, size_t n, float *panel);
    void (*tile)(const struct gemm_cpu_tile *t);
};

/* Floats packed at a time for a matmul of these sizes. */
size_t gemm_cpu_scratch(const struct gpu *g, size_t m, size_t n, size_t k);
/* Allocates scratch memory for n floats ahead of the first matmul or attention that needs it. */
int gemm_cpu_reserve(struct gpu *g, size_t n, struct cairn_error *err);
size_t gemm_cpu_reserved(const struct gpu *g); /* floats; 0 on another device */
/* c = … as gemm.h says, on all threads of the CPU device g; pointers are the host's. */
int gemm_cpu_run(struct gpu *g, enum gpu_storage storage, const struct gemm_args *args, size_t batches,
                 struct cairn_error *err);

/* The same where `read` makes the rows of a as they are packed; all are contiguous, a_stride apart. */
struct gemm_cpu_rows {
    void (*read)(const void *context, size_t row, size_t n, void *to);
    const void *context;
};
size_t gemm_cpu_scratch_rows(const struct gpu *g, enum gpu_storage storage, size_t m, size_t n, size_t k);
int gemm_cpu_run_rows(struct gpu *g, enum gpu_storage storage, const struct gemm_args *args,
                      const struct gemm_cpu_rows *rows, struct cairn_error *err);

#endif
