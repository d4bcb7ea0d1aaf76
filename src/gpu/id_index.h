/* SPDX-License-Identifier: Apache-2.0
 * Inverted index of `ids`: for each distinct id, the positions where it occurs, in order.  embedding_backward
 * reads it (kernels/embedding.h). */
#ifndef CAIRN_GPU_ID_INDEX_H
#define CAIRN_GPU_ID_INDEX_H

#include "base/arena.h"
#include "base/error.h"
#include <stddef.h>

struct id_index {
    size_t n;     /* lists */
    int *ids;     /* [n], ascending */
    int *first;   /* [n + 1], into members */
    int *members; /* one for each id */
};

/* All ids must be in 0 … limit - 1. */
int id_index_build(struct arena *a, const int *ids, size_t n_ids, int limit, struct id_index *out,
                   struct cairn_error *err);

#endif
