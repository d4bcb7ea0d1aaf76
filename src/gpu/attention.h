/* SPDX-License-Identifier: Apache-2.0
 * Attention, forward and backward (kernels/attention.h), by the best kernels that the device has for the
 * format: matrix cores for 16-bit tensors where there are any, else plain multiply-add.
 *
 * Work is queued, not waited for. */
#ifndef CAIRN_GPU_ATTENTION_H
#define CAIRN_GPU_ATTENTION_H

#include "gpu/gpu.h"
#include "gpu/kernels/attention.h"

int attention_forward(struct gpu *g, struct gpu_stream *s, enum gpu_storage storage, k_i64 samples,
                      const struct attention_args *a, struct cairn_error *err);
/* Reads a->o, a->lse and their inputs; a->delta is a workspace of the size of lse. */
int attention_backward(struct gpu *g, struct gpu_stream *s, enum gpu_storage storage, k_i64 samples,
                       const struct attention_backward_args *a, struct cairn_error *err);

#endif
