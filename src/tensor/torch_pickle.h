/* SPDX-License-Identifier: Apache-2.0
 * Reads the pickles of torch.save: tensors as views of storages, in plain containers.
 *
 * One table has the names that may be imported: tensors, parameters, storages, dtypes, OrderedDict, Size and
 * a few harmless values.  Any other name is an error that names it. */
#ifndef CAIRN_TENSOR_TORCH_PICKLE_H
#define CAIRN_TENSOR_TORCH_PICKLE_H

#include "tensor/dtype.h"
#include "tensor/pickle.h"

enum { TORCH_RANK_MAX = 64, TORCH_DEPTH_MAX = 64 };

/* An element type, by its names in torch. */
struct torch_dtype {
    const char *storage;     /* "BFloat16Storage"; NULL: only by its dtype */
    const char *name;        /* "bfloat16" */
    enum dtype dtype;        /* DTYPE_OTHER: can be listed and copied, not converted */
    const char *safetensors; /* "BF16" */
    size_t size;             /* bytes of one element */
};

struct torch_storage {
    const char *key;                /* its data is the entry data/KEY of the archive */
    const struct torch_dtype *type; /* NULL: bytes */
    uint64_t n;                     /* elements, or bytes */
};

/* Element (i, j, …) is at offset + i * stride[0] + j * stride[1] + … of the storage.  Nothing is checked yet
 * but that the numbers are there and none is negative. */
struct torch_view {
    const struct torch_storage *storage;
    const struct torch_dtype *type;
    uint64_t offset;
    const uint64_t *shape, *stride;
    int rank;
};

struct torch_named {
    const char *name; /* keys and positions from the outside in: "state_dict.blocks.0.weight" */
    const struct torch_view *view;
};

/* The tensors of a pickle in the order of its containers.  A tensor that is all there is has the name
 * "tensor". */
int torch_pickle_read(const void *bytes, size_t n, struct arena *a, struct torch_named **out, size_t *n_out,
                      struct cairn_error *err);

#endif
