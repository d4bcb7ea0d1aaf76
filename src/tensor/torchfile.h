/* SPDX-License-Identifier: Apache-2.0
 * Files of torch.save: .pth, .pt.
 *
 * Since torch 1.6 such a file is a zip archive of stored entries: NAME/data.pkl, a pickle that describes the tensors,
 * and NAME/data/K, the bytes of their storages.  The pickle is read as data; nothing in it is executed, and what is
 * neither a tensor nor a plain container is refused by name.  Nested containers become one list of tensors with
 * dots in their names.  Older files (a bare pickle), compressed entries and big-endian ones are refused.
 *
 * Tensors may share a storage.  One whose elements lie in one piece has its place in `at`; of any other `at` is 0,
 * and torch_file_read puts its elements in order.  An open file may be read from several threads. */
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
    struct st_tensor *tensors; /* in the order of the containers; no name comes twice */
    size_t n_tensors;
    const struct torch_strided *strided; /* of each tensor: how its elements lie */
    struct zip zip;
};

int torch_file_open(struct torch_file *f, const char *path, struct cairn_error *err);
void torch_file_close(struct torch_file *f); /* accepts a zeroed one */

/* Elements first … first+n-1 in the order of the shape. */
int torch_file_read(const struct torch_file *f, const struct st_tensor *t, uint64_t first, uint64_t n,
                    void *into, struct cairn_error *err);
/* The same in bytes, also of kinds that are no dtype of ours.  The range must be whole elements. */
int torch_file_read_bytes(const struct torch_file *f, const struct st_tensor *t, uint64_t byte, uint64_t n,
                          void *into, struct cairn_error *err);

/* Has it a large tensor whose elements lie out of order?  They are best read in pieces of many MiB: each piece takes a
 * little from everywhere. */
bool torch_file_is_scattered(const struct torch_file *f);
/* The sums that the archive has of its entries; *out is in the arena.  Fails if an entry is not where it should be. */
int torch_file_sums(const struct torch_file *f, struct arena *a, struct st_sum **out, size_t *n,
                    struct cairn_error *err);
/* Do these bytes of the file hold elements of the tensor? */
bool torch_file_lies_in(const struct torch_file *f, const struct st_tensor *t, const struct st_sum *sum);

#endif
