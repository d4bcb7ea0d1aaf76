/* SPDX-License-Identifier: Apache-2.0
 * Every kernel of kernels/: its text, and the same text compiled for the CPU.  The tables are made from the
 * files themselves when cairn is built (scripts/kernels.py). */
#ifndef CAIRN_GPU_KERNEL_ROWS_H
#define CAIRN_GPU_KERNEL_ROWS_H

#include "gpu/gpu.h"
#include "gpu/kernels/types.h"

/* The CPU's features decide which version of a kernel runs; all compute the same bits.  KERNEL_DEBUG checks
 * indices and values. */
enum kernel_variant { KERNEL_DEBUG, KERNEL_PLAIN, KERNEL_AVX2, KERNEL_AVX512, KERNEL_VARIANTS };

/* Runs one group. */
typedef void kernel_fn(const void *args, struct k_place place);

struct kernel_text {
    const char *file;        /* "norm" */
    const char *args, *body; /* between them stands the prelude */
    const char *chip;        /* "sm_90a": for that chip alone, and not for the CPU; NULL: for all */
};

struct kernel_row {
    const char *name; /* "layer_norm" */
    const struct kernel_text *text;
    size_t args_size;
    unsigned group;  /* work-items */
    unsigned shared; /* bytes of shared memory beyond what the kernel declares */
    bool mma;        /* for devices with matrix cores only, and 16-bit tensors */
    /* All NULL: there is none for this format, anywhere, or the kernel is for one chip. */
    kernel_fn *host[GPU_STORAGES][KERNEL_VARIANTS];
};

extern const char kernel_types[], kernel_prelude[];
extern const struct kernel_text kernel_texts[];
extern const size_t n_kernel_texts;
extern const struct kernel_row kernel_rows[];
extern const size_t n_kernel_rows;

const struct kernel_row *kernel_find(const char *name); /* NULL: there is none */
/* Whether a device has it for a format. */
bool kernel_is_for(const struct kernel_row *row, const struct gpu *g, enum gpu_storage storage);

#endif
