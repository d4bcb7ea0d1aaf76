/* SPDX-License-Identifier: Apache-2.0
 * Quantizes parameters on the device while they are loaded.
 *
 * Their rows are uploaded as the file has them, in batches, into the buffer that weights_matrix dequantizes
 * into.  A kernel computes scales and codes: the bits of quantize.h.  If the device cannot, the caller
 * quantizes the rest on the host. */
#ifndef CAIRN_NN_PARAM_QUANTIZE_H
#define CAIRN_NN_PARAM_QUANTIZE_H

#include "nn/param_file.h"
#include "nn/param_scale.h"

/* A parameter and its tensors in the file, which are contiguous and not transposed. */
struct param_quantize {
    const struct param_tensor *tensors;
    const struct st_tensor *const *found;
    const struct param_scale *scales;
    size_t n;
};
bool param_quantize_can(const struct weights *w, const struct param_quantize *q);
/* *done counts those that are quantized.  If they are not all, weights.host_quant says why. */
int param_quantize(const struct weights *w, const struct tensor_source *s, const struct param_quantize *list,
                   size_t n, size_t *done, struct cairn_error *err);

#endif
