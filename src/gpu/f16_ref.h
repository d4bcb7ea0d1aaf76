/* SPDX-License-Identifier: Apache-2.0
 * bf16 and f16 by their definition, one number at a time: what kernels are compared with. */
#ifndef CAIRN_GPU_F16_REF_H
#define CAIRN_GPU_F16_REF_H

#include "gpu/gpu.h"

/* To the nearest, ties to even; NaN becomes the quiet one. */
uint16_t f16_from_float(enum gpu_storage s, float f);
float f16_to_float(enum gpu_storage s, uint16_t h);

#endif
