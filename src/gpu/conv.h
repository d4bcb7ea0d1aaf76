/* SPDX-License-Identifier: Apache-2.0
 * Convolution of one sample (kernels/conv.h) as im2col and matmul, in pieces that fit into the workspace.
 *
 * y and dy are [filters][out.t][out.h][out.w], weights [filters][channels × kernel].  `work` is device memory
 * of at least conv_workspace_min bytes; the more, the fewer pieces. */
#ifndef CAIRN_GPU_CONV_H
#define CAIRN_GPU_CONV_H

#include "gpu/blas.h"
#include "gpu/kernels/conv.h"

struct conv {
    struct blas *blas;
    struct gpu *g;
    struct gpu_stream *stream;
    enum gpu_storage storage;
    struct conv_shape shape;
    k_i64 filters;
    void *work;
    size_t work_bytes;
};

/* One frame of columns; 0 if the matmul needs none (kernel 1 × 1 × 1, stride 1). */
size_t conv_workspace_min(const struct conv *c);
int conv_forward(const struct conv *c, void *y, const void *x, const void *past, const void *weights,
                 const float *bias, struct cairn_error *err);
int conv_backward_data(const struct conv *c, void *dx, const void *dy, const void *weights,
                       struct cairn_error *err);
/* Adds to dw, which is f32. */
int conv_backward_weights(const struct conv *c, float *dw, const void *dy, const void *x, const void *past,
                          struct cairn_error *err);

#endif
