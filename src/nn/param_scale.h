/* SPDX-License-Identifier: Apache-2.0
 * The scales of fp8 weights in a file (tensor/fp8_scaled.h), for param_file.c and param_load.c. */
#ifndef CAIRN_NN_PARAM_SCALE_H
#define CAIRN_NN_PARAM_SCALE_H

#include "tensor/source.h"

/* Element e of a tensor has scale e / block.  {0}: it has none. */
struct param_scale {
    const struct st_tensor *tensor;
    uint64_t block;
};

/* Fails where the scale does not fit the weight, and for an fp8 matrix without one in a file that has
 * scales: without it the weight would be about a thousand times too large. */
int param_scale_find(const struct tensor_source *s, const struct st_tensor *weight, bool file_is_scaled,
                     struct param_scale *out, struct cairn_error *err);
/* Whether anything in the file says that its fp8 weights have scales. */
bool param_scale_is_in(const struct tensor_source *s);
/* Whether a tensor is a scale, marker or hint that goes with a weight of the file. */
bool param_scale_is_bookkeeping(const struct tensor_source *s, const char *name);

/* Multiplies the elements first ... first + n - 1 of a weight. */
int param_scale_apply(const struct tensor_source *s, const struct param_scale *scale, uint64_t first,
                      size_t n, float *numbers, struct cairn_error *err);
/* Whether all of a row has one scale. */
bool param_scale_is_by_row(const struct param_scale *scale, uint64_t columns);
/* The scales of rows of a weight where that is so; 1 without scales. */
int param_scale_of_rows(const struct tensor_source *s, const struct param_scale *scale, uint64_t columns,
                        uint64_t first, size_t rows, float *out, struct cairn_error *err);

#endif
