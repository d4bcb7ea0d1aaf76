/* SPDX-License-Identifier: Apache-2.0
 * What a conversion lost, counted; and repaired where asked: values beyond the largest finite one, NaN, and values
 * that became zero.  Works on finished output, so that conversions need not count. */
#ifndef CAIRN_TENSOR_MEND_H
#define CAIRN_TENSOR_MEND_H

#include "tensor/dtype.h"

struct mend_counts {
    uint64_t overflowed;  /* finite before, Inf now (NaN where there is no Inf) */
    uint64_t underflowed; /* not zero before, zero now */
    uint64_t clamped, nans_replaced;
};

struct mend_how {
    bool clamp, replace_nan;
    double nan;
    double limit; /* what clamp keeps magnitudes to; 0: the largest finite value of the dtype */
};

/* Can this conversion lose anything, or has anything to be replaced?  If not there is no need to call mend. */
bool mend_is_needed(enum dtype to, enum dtype from, const struct mend_how *how);
/* dst was converted (without saturation) from src; adds to counts. */
void mend(void *dst, enum dtype to, const void *src, enum dtype from, size_t n, const struct mend_how *how,
          struct mend_counts *counts);

#endif
