/* SPDX-License-Identifier: Apache-2.0
 * A table of what is compiled once for each format and set of instructions (src/gpu/meson.build); NULL where
 * the build has none for these. */
#ifndef CAIRN_GPU_CPU_ROWS_H
#define CAIRN_GPU_CPU_ROWS_H

#include "gpu/gpu.h"
#include "gpu/kernel_rows.h"

#ifdef KERNELS_WIDE /* the build has them */
#define CPU_EXTERN(type, storage) \
    extern const struct type type##_##storage##_plain, type##_##storage##_avx2, type##_##storage##_avx512
#define CPU_VARIANTS(type, storage)                                                           \
    {                                                                                         \
        [KERNEL_PLAIN] = &type##_##storage##_plain, [KERNEL_AVX2] = &type##_##storage##_avx2, \
        [KERNEL_AVX512] = &type##_##storage##_avx512,                                         \
    }
#else
#define CPU_EXTERN(type, storage) extern const struct type type##_##storage##_plain
#define CPU_VARIANTS(type, storage)                \
    {                                              \
        [KERNEL_PLAIN] = &type##_##storage##_plain \
    }
#endif

/* static const struct TYPE *const TABLE[GPU_STORAGES][KERNEL_VARIANTS] */
#define CPU_ROWS(type, table)                                                \
    CPU_EXTERN(type, f32);                                                   \
    CPU_EXTERN(type, bf16);                                                  \
    CPU_EXTERN(type, f16);                                                   \
    static const struct type *const table[GPU_STORAGES][KERNEL_VARIANTS] = { \
        [GPU_F32] = CPU_VARIANTS(type, f32),                                 \
        [GPU_BF16] = CPU_VARIANTS(type, bf16),                               \
        [GPU_F16] = CPU_VARIANTS(type, f16),                                 \
    }

#endif
