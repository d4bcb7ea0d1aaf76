/* SPDX-License-Identifier: Apache-2.0
 * Files of torch.save: .pth, .pt.
 *
 * Since torch 1.6 such a file is a zip archive of stored entries: NAME/data.pkl, a pickle that describes the
 * tensors, and NAME/data/K, the bytes of their storages.  The pickle is read as data; nothing in it is
 * executed, and anything but tensors and plain containers is an error that names it.  Nested containers
 * become one list of tensors with dots in their names.  Older files (a bare pickle), compressed entries and
 * big-endian files are not supported.
 *
 * Tensors may share a storage.  `at` is the offset of a contiguous tensor; for any other it is 0, and
 * torch_file_read gathers its elements.  An open file may be read from several threads. */
#ifndef CAIRN_TENSOR_TORCHFILE_H
#define CAIRN_TENSOR_TORCHFILE_H

#include "tensor/safetensors.h"
#include "tensor/zip.h"

struct torch_strided;

struct torch_file {
    struct arena arena;
    char *path;
    int fd;
    uint64_t size;
    struct st_tensor *tensors; /* in the order of the containers; names are unique */
    size_t n_tensors;
    const struct torch_strided *strided; /* offset and strides of each tensor */
    struct zip zip;
};

int torch_file_open(struct torch_file *f, const char *path, struct cairn_error *err);
void torch_file_close(struct torch_file *f); /* accepts a zeroed one */

/* Elements first … first+n-1 in the order of the shape. */
int torch_file_read(const struct torch_file *f, const struct st_tensor *t, uint64_t first, uint64_t n,
                    void *into, struct cairn_error *err);
/* The same in bytes, also for unknown dtypes.  The range must be whole elements. */
int torch_file_read_bytes(const struct torch_file *f, const struct st_tensor *t, uint64_t byte, uint64_t n,
                          void *into, struct cairn_error *err);

/* Whether the elements of a large tensor are out of order.  Read those in pieces of many MiB, because each
 * piece reads a little from everywhere. */
bool torch_file_is_scattered(const struct torch_file *f);
/* The CRC-32 of the archive's entries; *out is in the arena.  Fails if an entry is not where the directory
 * says. */
int torch_file_sums(const struct torch_file *f, struct arena *a, struct st_sum **out, size_t *n,
                    struct cairn_error *err);
/* Whether these bytes of the file contain elements of the tensor. */
bool torch_file_lies_in(const struct torch_file *f, const struct st_tensor *t, const struct st_sum *sum);

#endif
