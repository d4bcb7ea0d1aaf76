/* SPDX-License-Identifier: Apache-2.0
 * A vector along the columns of a matrix: added, multiplied, or the sum of the rows.  Vectors are f32. */
#ifndef CAIRN_GPU_KERNELS_COLUMNS_H
#define CAIRN_GPU_KERNELS_COLUMNS_H

#include "gpu/kernels/types.h"

/* bias: y = x + bias.  Its gradient is column_sum of dy.  K_ROW_GROUPS groups. */
struct bias_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    const float *bias;
    k_i64 rows, columns;
};

/* gate: y = x + gate z, or gate z where x is NULL; one gate for every rows_per_gate rows (0: one for all), as in
 * diffusion transformers; NULL means 1.  The gradient of x is dy; of z, gate with dy for z and no x; of the gates,
 * column_dot of dy and z.  gate_wide: x and y are f32.  gate_wide_backward: z is, for the gradient of gate_wide's z.
 * K_ROW_GROUPS groups. */
struct gate_args {
    struct k_fault *fault;
    void *y;
    const void *x, *z;
    const float *gate;
    k_i64 rows, columns, rows_per_gate;
};

/* modulation: y[part][set] = x[part] + add[set][part], rows of `columns` numbers; where add_parts is not `parts`, each
 * set has one row to add to all parts.  K_ROW_GROUPS(parts * sets, columns) groups. */
struct modulation_args {
    struct k_fault *fault;
    float *y;
    const float *x, *add;
    k_i64 sets, parts, add_parts, columns;
};

/* column_sum of x; column_dot of x z.  In parts, for fold (types.h). */
struct column_sum_args {
    struct k_fault *fault;
    float *sums; /* [set][part][columns] */
    const void *x, *z;
    k_i64 rows, columns, rows_per_set, rows_per_part;
};

/* fold: y[set] = the sum of its parts, always in the same order.  sets groups in x, K_FOLDS in y. */
struct fold_args {
    struct k_fault *fault;
    float *y;
    const float *sums;
    k_i64 parts, columns;
    k_u32 add; /* to what is in y already */
};

#endif
