/* SPDX-License-Identifier: Apache-2.0
 * A tensor file of any format: one list of tensors and one way to read them.
 *
 * safetensors, a sharded index ("….index.json") and torch's zip files (.pth, .pt) are distinguished by their
 * content. The list is in the order of the data and never changes while the source is open; names, shapes and
 * metadata belong to the source and die with it.  An open source may be read from several threads. */
#ifndef CAIRN_TENSOR_SOURCE_H
#define CAIRN_TENSOR_SOURCE_H

#include "tensor/safetensors.h"

struct source_format;
struct os_info;

struct tensor_source {
    const char *path;
    const char *format; /* "safetensors", "torch" */
    const struct st_tensor *tensors;
    size_t n_tensors;
    const struct st_meta *meta;
    size_t n_meta;
    size_t n_files; /* more than one: shards */
    bool direct;    /* reads bypass the page cache; use pieces of a MiB or more if possible */
    bool scattered; /* the elements of a large tensor are out of order; use pieces of many MiB if possible */

    /* Private. */
    bool siblings; /* of a shard are opened with it */
    const struct source_format *how;
    void *file;
    struct arena arena;
    const struct st_tensor **by_name;
    struct os_info *stamps;
};

int source_open(struct tensor_source *s, const char *path, struct cairn_error *err);
/* The same; one shard ("…-00002-of-00006.safetensors") opens all of its model. */
int source_open_model(struct tensor_source *s, const char *path, struct cairn_error *err);
void source_close(struct tensor_source *s); /* accepts a zeroed one; for CLEANUP */

/* Requests direct reads, before the first read; false if a file system refuses or a tensor is scattered: then
 * the page cache is used. */
bool source_set_direct(struct tensor_source *s);

const struct st_tensor *source_find(const struct tensor_source *s,
                                    const char *name); /* NULL: no such tensor */
const char *source_meta_find(const struct tensor_source *s, const char *key);
/* The file that holds this tensor: the path, or a shard's. */
const char *source_path_of(const struct tensor_source *s, const struct st_tensor *t);

/* Elements first … first+n-1 as they are in the file.  The error names file, tensor and offset. */
int source_read(const struct tensor_source *s, const struct st_tensor *t, uint64_t first, uint64_t n,
                void *into, struct cairn_error *err);
/* The same, converted on the way; both kinds must be floating. */
int source_read_as(const struct tensor_source *s, const struct st_tensor *t, uint64_t first, uint64_t n,
                   enum dtype as, void *into, struct cairn_error *err);
/* Bytes of a tensor, also of one whose dtype we do not know.  Where the dtype is known, the range must be
 * whole elements. */
int source_read_bytes(const struct tensor_source *s, const struct st_tensor *t, uint64_t byte, uint64_t n,
                      void *into, struct cairn_error *err);
/* The descriptor and offset of a tensor whose bytes lie in one piece; false if they do not. */
bool source_place(const struct tensor_source *s, const struct st_tensor *t, int *fd, uint64_t *at);
/* Fails if a file changed since it was opened: the data may be a mixture. */
int source_unchanged(const struct tensor_source *s, struct cairn_error *err);

/* The checksums that the file has of its bytes, in the arena; none for formats without. */
int source_sums(const struct tensor_source *s, struct arena *a, struct st_sum **out, size_t *n,
                struct cairn_error *err);
/* Reads bytes of a file that has checksums. */
int source_read_sum(const struct tensor_source *s, const struct st_sum *sum, uint64_t byte, uint64_t n,
                    void *into, struct cairn_error *err);
bool source_lies_in(const struct tensor_source *s, const struct st_tensor *t, const struct st_sum *sum);

/* Whether the name matches one of the shell patterns; without patterns, every name does. */
bool source_name_matches(const char *name, const char *const *globs, size_t n);

#endif
