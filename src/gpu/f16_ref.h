/* SPDX-License-Identifier: Apache-2.0
 * Reference conversions of bf16 and f16, one value at a time, with which kernels are compared. */
#ifndef CAIRN_GPU_F16_REF_H
#define CAIRN_GPU_F16_REF_H

#include "gpu/gpu.h"

/* To the nearest, ties to even; NaN becomes the quiet one. */
uint16_t f16_from_float(enum gpu_storage s, float f);
float f16_to_float(enum gpu_storage s, uint16_t h);

#endif
