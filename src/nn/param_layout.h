/* SPDX-License-Identifier: Apache-2.0
 * A tensor of a parameter as rows in a file, and pieces of it, for reading and writing. */
#ifndef CAIRN_NN_PARAM_LAYOUT_H
#define CAIRN_NN_PARAM_LAYOUT_H

#include "nn/param_file.h"

struct param_layout {
    size_t rows, columns;
};
struct param_layout param_layout_of(const struct param_tensor *t);
/* The shape in a file; returns the rank. */
int param_layout_shape(const struct param_tensor *t, uint64_t shape[PARAM_DIMS]);
/* Where a tensor's first number is among those of its parameter. */
size_t param_layout_start(const struct param_tensor *t);
size_t param_layout_piece_rows(struct param_layout s);
size_t param_layout_pieces(struct param_layout s);
/* y[c][r] = x[r][c], where rows of x are x_stride apart and those of y y_stride. */
void param_layout_transpose(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows,
                            size_t columns);
/* Rows of a tensor with taps, as the parameter has them. */
void param_layout_last_channels(const struct param_tensor *t, float *y, const float *x, size_t rows);
/* The largest number that a parameter can hold.  NaN is within nothing. */
float param_limit(const struct param *p, enum gpu_storage storage);
/* Fails with the name of a tensor that has a larger one. */
int param_refuse(const struct tensor_source *s, const struct st_tensor *found, const char *name,
                 enum gpu_storage storage, struct cairn_error *err);
/* Whether no value is NaN or infinite; f32, f16, bf16 or e4m3. */
bool param_layout_is_finite(const void *numbers, enum dtype t, size_t n);

/* How many tensors the parameter of tensor `at`, its first, has. */
size_t param_tensors_of(const struct param_tensors *t, size_t at);
/* Memory for the values of a parameter; NULL on failure. */
float *param_alloc(const struct param *p, struct cairn_error *err);

#endif
