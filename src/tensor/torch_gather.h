/* SPDX-License-Identifier: Apache-2.0
 * Reads a tensor whose storage has its elements in another order: transposed, sliced, repeated.
 *
 * A range of elements is gathered while the storage is read from start to end, in pieces of bounded size, so
 * that memory is about the size of the range, however large the storage is.  A range touches many parts of
 * the storage, so one long range is cheaper than many short ones.  Several threads may gather from one
 * file. */
#ifndef CAIRN_TENSOR_TORCH_GATHER_H
#define CAIRN_TENSOR_TORCH_GATHER_H

#include "tensor/safetensors.h"

struct zip_entry;

struct torch_strided {
    uint64_t at; /* of its first element, in the file */
    size_t size; /* bytes of one element */
    const uint64_t *stride;
    bool whole; /* its elements are contiguous and in order */
    const struct zip_entry *entry;
    uint64_t data_at; /* of the entry's data, in the file */
};

struct torch_bytes {
    int fd;
    const char *path;
};

/* Elements first … first+n-1 in the order of the shape; they must be there. */
int torch_gather(const struct torch_bytes *f, const struct st_tensor *t, const struct torch_strided *how,
                 uint64_t first, uint64_t n, char *into, struct cairn_error *err);

#endif
