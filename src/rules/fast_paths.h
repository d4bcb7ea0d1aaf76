/* SPDX-License-Identifier: Apache-2.0
 * Which of PyTorch's fast paths a job will find: libraries with kernels for the chip, and fused attention. */
#ifndef CAIRN_RULES_FAST_PATHS_H
#define CAIRN_RULES_FAST_PATHS_H

#include "rules/plan.h"

struct fast_paths {
    const char
        *target; /* the target whose code it uses, after any override; NULL: not a ROCm build, or the chip is
                  * unknown */
    enum tri rocblas, hipblaslt, attention;
};
/* With the plan applied. */
struct fast_paths fast_paths_find(const struct facts *f, const struct plan *p, struct arena *a);
/* "matrix kernels for gfx1100: rocBLAS, hipBLASLt; fused attention: on"; NULL: unknown. */
const char *fast_paths_text(const struct fast_paths *p, struct arena *a);

#endif
