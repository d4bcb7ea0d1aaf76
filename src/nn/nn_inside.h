/* SPDX-License-Identifier: Apache-2.0
 * What the files of ops (nn.c, nn_attention.c ...) share: launching a kernel, and telling the watcher. */
#ifndef CAIRN_NN_NN_INSIDE_H
#define CAIRN_NN_NN_INSIDE_H

#include "nn/nn.h"

/* A kernel to launch, and what it leaves: n values at `out`, while it moves `arrays` arrays of that size. */
struct nn_launch {
    const char *kernel;
    enum gpu_storage storage;
    struct gpu_grid grid;
    const void *args;
    size_t args_size;
    const void *out; /* NULL: nothing to look at */
    size_t n, arrays;
    bool f32_out;        /* out is f32, whatever the storage */
    double flops, bytes; /* bytes 0: what the arrays have */
};
int nn_launch(struct nn *nn, const struct nn_launch *l, struct cairn_error *err);

/* In the storage format of nn; the result is NN_OUT(out, n, arrays). */
#define NN_OUT(out_, n_, arrays_) .out = (out_), .n = (n_), .arrays = (arrays_)
#define NN_LAUNCH(nn, name, grid_, args_, result, err)         \
    nn_launch(nn,                                              \
              &(struct nn_launch){ .kernel = (name),           \
                                   .storage = (nn)->storage,   \
                                   .grid = (grid_),            \
                                   .args = &(args_),           \
                                   .args_size = sizeof(args_), \
                                   result },                   \
              err)

/* Tells the watcher, if there is one, about an op that was queued by other means; fills in e->where. */
int nn_report_op(struct nn *nn, struct nn_event e, struct cairn_error *err);
/* Puts the place and the op before the message; always -1. */
int nn_fail_at(struct nn *nn, const char *op, struct cairn_error *err);

/* A matmul; slope_of as in nn_linear_back. */
int nn_gemm(struct nn *nn, const char *op, const struct gemm_args *args, const void *slope_of,
            struct cairn_error *err);
/* y[set] += the sum of the rows of x, or of x z, in sets of rows_per_set rows; 0: all are one set. */
struct nn_sums {
    float *y;
    const void *x, *z; /* z may be NULL */
    size_t rows, columns, rows_per_set;
};
int nn_add_sums(struct nn *nn, const struct nn_sums *s, struct cairn_error *err);

size_t nn_elem_bytes(const struct nn *nn);
/* A group for every few of n values. */
struct gpu_grid nn_grid_over(size_t n);

#endif
