/* SPDX-License-Identifier: Apache-2.0
 * One value at a time: the definition of a scan, and the tail of every faster version. */
#ifndef CAIRN_TENSOR_SCAN_SCALAR_H
#define CAIRN_TENSOR_SCAN_SCALAR_H

#include "tensor/dtype_scalar.h"
#include "tensor/scan.h"

enum { SCAN_INF_BITS = 0x7f800000, SCAN_MAGNITUDE = 0x7fffffff };

static inline void scan_one(struct scan_lanes *l, size_t lane, uint32_t bits, uint32_t smallest)
{
    uint32_t magnitude = bits & SCAN_MAGNITUDE;
    float v = scalar_f32(bits);
    l->zero += magnitude == 0;
    l->subnormal += magnitude != 0 && magnitude < smallest;
    l->inf += magnitude == SCAN_INF_BITS;
    l->nan += magnitude > SCAN_INF_BITS;
    if (magnitude >= SCAN_INF_BITS)
        return;
    l->min[lane] = v < l->min[lane] ? v : l->min[lane];
    l->max[lane] = v > l->max[lane] ? v : l->max[lane];
    l->sum[lane] += v;
    l->squares[lane] += v * v;
}

#endif
