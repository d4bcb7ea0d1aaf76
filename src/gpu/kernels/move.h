/* SPDX-License-Identifier: Apache-2.0
 * Kernels that move numbers bit for bit.  Input and output do not overlap. */
#ifndef CAIRN_GPU_KERNELS_MOVE_H
#define CAIRN_GPU_KERNELS_MOVE_H

#include "gpu/kernels/types.h"

/* transpose: y[b][c][r] = x[b][r][c].  A group takes MOVE_TILE rows and columns; the grid is the tiles of the
 * columns in x, of the rows in y, and the batch in z. */
#define MOVE_TILE 64
struct transpose_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    k_i64 rows, columns;
};

/* gather_rows: y[i] = x[index[i]]; scatter_rows: y[index[i]] = x[i], where no index comes twice.  `rows` is the
 * number of indices, `limit` the number of rows they point into.  K_ROW_GROUPS groups. */
struct index_rows_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    const int *index;
    k_i64 rows, columns, limit;
};

/* permute: y, of the sizes n, is row-major; y[i0][i1][i2][i3] = x[i0 step0 + i1 step1 + i2 step2 + i3].  The last
 * axis stays: B,T,H,D to B,H,T,D has n = B,H,T,D and step = T*H*D, D, H*D.  K_ROW_GROUPS(n0*n1*n2, n3) groups. */
struct permute_args {
    struct k_fault *fault;
    void *y;
    const void *x;
    k_i64 n[4], step[3];
};

#endif
