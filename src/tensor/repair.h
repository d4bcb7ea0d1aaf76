/* SPDX-License-Identifier: Apache-2.0
 * Counts what a conversion lost, and repairs it if requested: overflow, NaN, underflow to zero.  Works on
 * finished output, so that conversions need not count. */
#ifndef CAIRN_TENSOR_REPAIR_H
#define CAIRN_TENSOR_REPAIR_H

#include "tensor/dtype.h"

struct repair_counts {
    uint64_t overflowed;  /* finite before, Inf now (NaN where there is no Inf) */
    uint64_t underflowed; /* not zero before, zero now */
    uint64_t clamped, nans_replaced;
};

struct repair_options {
    bool clamp, replace_nan;
    double nan;
    double limit; /* limit of clamp; 0: the largest finite value of the dtype */
};

/* Whether this conversion can lose anything, or values must be replaced; otherwise repair_values does
 * nothing. */
bool repair_is_needed(enum dtype to, enum dtype from, const struct repair_options *how);
/* dst was converted (without saturation) from src; adds to counts. */
void repair_values(void *dst, enum dtype to, const void *src, enum dtype from, size_t n,
                   const struct repair_options *how, struct repair_counts *counts);

#endif
