/* SPDX-License-Identifier: Apache-2.0
 * Loads tensors of a file into the memory of a device.  Several threads read and convert while others
 * copy. */
#ifndef CAIRN_NN_TENSOR_LOAD_H
#define CAIRN_NN_TENSOR_LOAD_H

#include "gpu/transfer.h"
#include "tensor/source.h"

struct tensor_want {
    const struct st_tensor *tensor; /* of the source */
    enum dtype as;                  /* its own type, or one that it converts to */
    void *device;
    bool on_host; /* `device` is memory of the host */
};
/* o as in transfer.h.  Fails if the file was changed meanwhile. */
int tensor_load(struct gpu *g, const struct tensor_source *s, const struct tensor_want *wants, size_t n,
                const struct transfer_options *o, struct cairn_error *err);

#endif
