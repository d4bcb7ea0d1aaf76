/* SPDX-License-Identifier: Apache-2.0
 * The matmul that merging needs: w += scale * up * down, with a small inner dimension.
 *
 * w is [rows, cols], up [rows, rank], down [rank, cols]; all f32, row by row, no alignment asked for.  down
 * is packed once, then any rows of w can be done, by several threads if wanted.  Sums are in f32, in the
 * order of the rank.  Every variant gives the same bits. */
#ifndef CAIRN_TENSOR_LOWRANK_H
#define CAIRN_TENSOR_LOWRANK_H

#include <stddef.h>

size_t lowrank_packed(size_t cols, size_t rank); /* how many floats lowrank_pack writes */
void lowrank_pack(float *packed, const float *down, size_t cols, size_t rank);

struct lowrank {
    size_t rows, cols, rank;
    const float *up, *packed; /* packed: down, by lowrank_pack */
    float scale;
};
void lowrank_add(float *w, const struct lowrank *product);
/* For tests: with a given set of CPU features (enum in dtype.h). */
void lowrank_add_with(unsigned cpu, float *w, const struct lowrank *product);

#endif
