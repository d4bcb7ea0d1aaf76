/* SPDX-License-Identifier: Apache-2.0
 * Rotary positions.  A row is one head of one token, `columns` numbers, of which the first 2 * pairs are turned in
 * pairs by the angles of the token's position and the rest are copied: (a, b) becomes (a cos - b sin, a sin + b cos).
 * The tables of cos and sin, [position][pairs], come from rope.h.
 *
 * rope_halves pairs i with i + pairs (GPT-NeoX, Llama in HF's order); rope_pairs pairs 2i with 2i + 1 (GPT-J, Wan).
 * The position of row r is r / rows_per_position % positions: for B,T,H,D rows_per_position is H; for B,H,T,D it
 * is 1.  The rows of a position are neighbours, and from a position to the next it is `stride` numbers.  The gradient
 * is the same with `back`: the inverse rotation.  y may be x.
 * K_ROW_GROUPS(rows, pairs) groups. */
#ifndef CAIRN_GPU_KERNELS_ROPE_H
#define CAIRN_GPU_KERNELS_ROPE_H

#include "gpu/kernels/types.h"

struct rope_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    const float *cos_, *sin_;
    k_i64 rows, columns, pairs, rows_per_position, stride, positions;
    k_u32 back;
};

#endif
