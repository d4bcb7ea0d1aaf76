/* SPDX-License-Identifier: Apache-2.0
 * Rows of a table by number. */
#ifndef CAIRN_GPU_KERNELS_EMBEDDING_H
#define CAIRN_GPU_KERNELS_EMBEDDING_H

#include "gpu/kernels/types.h"

/* embedding: y[r] = table[ids[r]], plus positions[r % n_positions] where there are any.  K_ROW_GROUPS groups. */
struct embedding_args {
    struct k_fault *fault;
    void *y;
    const void *table, *positions; /* positions may be NULL */
    const int *ids;
    k_i64 rows, columns, limit; /* limit: rows of the table */
    k_i64 n_positions;
};

/* embedding_backward: dtable[id] += the sum of dy over the rows that have that id.  The rows come as lists (lists.h):
 * list i is of ids[i], which no other list has, and names the rows members[first[i]] … members[first[i + 1] - 1].
 * Nothing else of dtable is touched.  `lists` groups in x, K_TILES(columns) in y.  The gradient of a table of
 * positions is the same, its lists being those of r % n_positions. */
struct embedding_backward_args {
    struct k_fault *fault;
    float *dtable;
    const void *dy;
    const int *ids, *first, *members;
    k_i64 columns, rows, limit;
};

#endif
