/* SPDX-License-Identifier: Apache-2.0
 * Tensors of a file into memory of a device: read by several threads, converted on the way, copied meanwhile. */
#ifndef CAIRN_NN_TENSOR_LOAD_H
#define CAIRN_NN_TENSOR_LOAD_H

#include "gpu/transfer.h"
#include "tensor/source.h"

struct tensor_want {
    const struct st_tensor *tensor; /* of the source */
    enum dtype as;                  /* its own kind, or one that it converts to */
    void *device;
    bool on_host; /* it is the host's */
};
/* o as in transfer.h.  Fails if the file was written to meanwhile. */
int tensor_load(struct gpu *g, const struct tensor_source *s, const struct tensor_want *wants, size_t n,
                const struct transfer_options *o, struct cairn_error *err);

#endif
