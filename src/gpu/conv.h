/* SPDX-License-Identifier: Apache-2.0
 * Convolution of one clip, channels last (kernels/conv.h).
 *
 * If a way needs it, what the pixels see is gathered in `work` as rows for a matmul, in pieces that fit. */
#ifndef CAIRN_GPU_CONV_H
#define CAIRN_GPU_CONV_H

#include "gpu/blas.h"
#include "gpu/kernels/conv.h"

struct conv {
    struct gpu *g;
    struct gpu_stream *stream;
    struct blas *blas;
    enum gpu_storage storage;
    void *work; /* conv_workspace bytes or more; may be NULL if that is 0 */
    size_t work_bytes;
    const char *only; /* the kernel to use, for tests; NULL: the fastest that fits */
};

/* Device memory for a convolution; on another device, by what it probably has. */
size_t conv_workspace(const struct conv *c, const struct conv_args *a);
size_t conv_workspace_on(const struct gpu_info *device, enum gpu_storage storage, const struct conv_args *a);
int conv_forward(const struct conv *c, const struct conv_args *a, struct cairn_error *err);

#endif
