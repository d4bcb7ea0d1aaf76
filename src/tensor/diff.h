/* SPDX-License-Identifier: Apache-2.0
 * Compares two tensors, value by value.
 *
 * Equal are: the same bits, the same value (0 and -0, 1.0 in bf16 and in f32), two NaN, and values with
 * |a - b| <= atol + rtol * |b|.  A NaN on one side only differs by infinity.  Tensors of an unknown dtype are
 * compared byte by byte. */
#ifndef CAIRN_TENSOR_DIFF_H
#define CAIRN_TENSOR_DIFF_H

#include "tensor/source.h"

struct progress;

struct diff_place {
    uint64_t index; /* of the element; of the byte for an unknown dtype */
    double a, b;
    double by; /* |a - b| */
};

struct diff_result {
    uint64_t differing;
    struct diff_place first, worst; /* count only if something differs */
};

struct diff_pair {
    const struct st_tensor *a, *b;
    bool compared; /* same shape, and dtypes that can be compared: set by diff_pairs */
    struct diff_result result;
};

struct diff_options {
    double rtol, atol;
    int threads;               /* 0: all */
    struct progress *progress; /* or NULL; counts the bytes of a */
};

/* Compares the values of every pair; fails only if a file cannot be read. */
int diff_pairs(const struct tensor_source *a, const struct tensor_source *b, struct diff_pair *pairs,
               size_t n, const struct diff_options *o, struct cairn_error *err);
bool diff_same_shape(const struct st_tensor *a, const struct st_tensor *b);

#endif
