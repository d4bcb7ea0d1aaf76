/* SPDX-License-Identifier: Apache-2.0
 * Checks that a device preserves bf16: all 65,536 values through every conversion and every way of copying.
 *
 * Trainers on ROCm met tensors of zeros after a conversion from bf16.  Each row converts every value there
 * is, on the device or on the CPU after a trip to the device and back, and counts the wrong ones for each way
 * of copying. */
#ifndef CAIRN_GPU_CONVERSIONS_H
#define CAIRN_GPU_CONVERSIONS_H

#include "gpu/gpu.h"

enum conversion_path {
    CONVERSION_DIRECT, /* from ordinary memory, and back into it */
    CONVERSION_STAGED, /* through memory that the device reaches by itself */
    CONVERSION_WITHIN, /* as direct, and moved once on the device */
    CONVERSION_PATHS
};

struct conversion {
    const char *from, *to, *where;
    size_t values;                  /* converted, for each path */
    size_t wrong[CONVERSION_PATHS]; /* of these */
};
enum { CONVERSIONS = 6 };

int conversions_run(struct gpu *g, struct conversion out[CONVERSIONS], struct cairn_error *err);

#endif
