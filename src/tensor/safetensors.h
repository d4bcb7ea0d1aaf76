/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes safetensors files.
 *
 * A file is a u64 header length, a JSON header {name: {dtype, shape, data_offsets}}, then the data.  What the
 * reference implementation accepts is accepted here and nothing else, but for these differences: a name that
 * appears twice is refused, so is a NUL character in a name or metadata, an integer of 2^63 or more and a
 * shape of more than 64 numbers; a tensor of an unknown dtype is listed (it cannot be converted), -0 counts
 * as 0, and unknown fields may be nested deeper than 127 levels.  Every offset and size is checked before a
 * byte of data is touched.
 *
 * A sharded model opens by its index ("….safetensors.index.json"): one list of tensors over several files.
 * Opening reads only the header; data is read with pread into the caller's memory, never mapped, because
 * mapped files count twice where CPU and GPU share memory.  An open file may be read from several threads. */
#ifndef CAIRN_TENSOR_SAFETENSORS_H
#define CAIRN_TENSOR_SAFETENSORS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "tensor/dtype.h"
#include <stdint.h>

enum { ST_HEADER_MAX = 100000000, ST_RANK_MAX = 64 };

struct st_tensor {
    const char *name;
    enum dtype dtype;
    const char *dtype_text; /* as in the file: "F8_E8M0" */
    const uint64_t *shape;
    int rank;
    uint64_t elements, bytes;
    uint64_t at;  /* offset in its file */
    size_t shard; /* which file */
};

/* A checksum that a file has of some of its bytes. */
struct st_sum {
    const char *name;               /* of the part: "archive/data/0" */
    uint64_t at, bytes;             /* in the file */
    uint32_t crc;                   /* CRC-32 */
    const struct st_tensor *tensor; /* the tensor that is exactly these bytes; NULL: none */
};

struct st_meta {
    const char *key, *value;
};

struct st_shard {
    char *path;
    int fd;
    uint64_t size, data_at;
};

struct st_file {
    struct arena arena;
    struct st_shard *shards;
    size_t n_shards;
    struct st_tensor *tensors; /* in the order of their data; shard after shard */
    size_t n_tensors;
    const struct st_tensor **by_name;
    struct st_meta *meta; /* of the first shard */
    size_t n_meta;
};

int st_open(struct st_file *f, const char *path, struct cairn_error *err);
/* The same; a path that ends with "-00002-of-00006.safetensors" opens all six. */
int st_open_siblings(struct st_file *f, const char *path, struct cairn_error *err);
/* Whether a path ends so: which shard it is, of how many, and where the number begins in the path. */
bool st_is_shard(const char *path, unsigned *number, unsigned *of, size_t *at);
void st_close(struct st_file *f);
const struct st_tensor *st_find(const struct st_file *f, const char *name); /* NULL: no such tensor */
const char *st_meta_find(const struct st_file *f, const char *key);

/* Elements first … first+n-1 as they are in the file. */
int st_read(const struct st_file *f, const struct st_tensor *t, uint64_t first, uint64_t n, void *into,
            struct cairn_error *err);

enum st_order {
    ST_ORDER_REFERENCE, /* by dtype and name, as the reference writer does */
    ST_ORDER_GIVEN,
    /* As given; but if that would misalign a tensor, which torch cannot map, tensors of larger elements come
     * first and the order is otherwise kept. */
    ST_ORDER_ALIGNED,
};

/* Writing: the layout is fixed at the start, data may come in any order and from several threads, and the
 * file appears under its name only when it is complete. */
struct st_writer {
    struct file_out out;
    uint64_t *at; /* by the caller's index: where its data goes */
    size_t n;
    uint64_t data_at, size;
    struct st_hashes {
        uint64_t model_at, legacy_at; /* in the file; 0: not asked for */
        uint64_t legacy_data;         /* offset in the data of what the legacy hash begins with */
    } hashes;
};

struct st_contents {
    const struct st_tensor *tensors; /* of each: name, dtype_text, shape, rank and bytes count */
    size_t n;
    const struct st_meta *meta;
    size_t n_meta;
    enum st_order order;
    /* Adds the hashes by which programs recognize a LoRA whatever is written into its metadata later:
     * sshs_model_hash is the SHA-256 of the data, sshs_legacy_hash that of 64 KiB at 1 MiB, in 8 digits, of the
     * same file with the metadata whose keys begin with ss_ alone. */
    bool hashes;
};

/* The contents are needed only during the call. */
int st_writer_open(struct st_writer *w, const char *path, const struct st_contents *c, bool replace,
                   struct cairn_error *err);
int st_writer_put(struct st_writer *w, size_t tensor, uint64_t byte, const void *bytes, size_t n,
                  struct cairn_error *err);
/* Reads bytes back, from the disk where the system can, and fails if they are others. */
int st_writer_verify(struct st_writer *w, size_t tensor, uint64_t byte, const void *bytes, size_t n,
                     struct cairn_error *err);
int st_writer_commit(struct st_writer *w, struct cairn_error *err);
void st_writer_close(struct st_writer *w); /* drops what was not committed */

#endif
