/* SPDX-License-Identifier: Apache-2.0
 * cairn's tensor files as a library: open, list, read as a dtype, write.
 *
 * Reads safetensors, sharded safetensors by their index (….index.json) and torch's zip files (.pth, .pt; nothing in
 * them is executed).  Writes safetensors: the file appears under its name only when all of it is on the disk.
 * Conversion is between the floating kinds, rounds to nearest even, keeps subnormals and NaN, and happens on the CPU
 * while the data is read.
 *
 * A function that can fail returns 0 or -1 and fills the error, if one was given.  What a file or writer hands out
 * (names, shapes) belongs to it and dies with it.  An open file may be read from several threads at once; different
 * tensors, or parts of one, may be written from several threads at once.
 *
 * dtypes are named as in safetensors: F64 F32 F16 BF16 F8_E4M3 F8_E5M2 I64 I32 I16 I8 U64 U32 U16 U8 BOOL; where a
 * name is asked for, "bf16", "bfloat16", "float8_e4m3fn" and the like are understood too.
 *
 *     cc read_tensor.c $(pkg-config --cflags --libs cairn-tensor) */
#ifndef CAIRN_TENSOR_H
#define CAIRN_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when something is added; a library never takes away what an older header promised. */
#define CAIRN_TENSOR_VERSION 2
int cairn_tensor_version(void); /* of the library that is loaded */

enum cairn_tensor_code {
    CAIRN_TENSOR_OK,
    CAIRN_TENSOR_EIO,     /* the system said no: open, read, write */
    CAIRN_TENSOR_EFORMAT, /* the file is not what it should be */
    CAIRN_TENSOR_EUSAGE,  /* the caller asked for something that does not exist, or the target exists */
    CAIRN_TENSOR_ELACK,   /* this machine lacks something */
    CAIRN_TENSOR_ENOMEM,
};

struct cairn_tensor_error {
    int code;          /* enum cairn_tensor_code */
    char message[512]; /* names file, tensor and offset; no full stop */
    char hint[256];    /* what to do about it; may be empty */
};

struct cairn_tensor_info {
    const char *name;
    const char *dtype; /* as in the file: "BF16", also a name this library does not know */
    const uint64_t *shape;
    size_t rank;
    uint64_t elements, bytes;
    const char *file; /* the path, or a shard's */
    uint64_t offset;  /* in that file; UINT64_MAX when the elements do not lie in one piece */
};

/* Reading. */

struct cairn_tensor_file;

int cairn_tensor_open(const char *path, struct cairn_tensor_file **out, struct cairn_tensor_error *err);
void cairn_tensor_close(struct cairn_tensor_file *f); /* accepts NULL */

/* Since version 2.  With CAIRN_TENSOR_DIRECT data is read past the page cache (O_DIRECT), which keeps memory free for the
 * GPU where it shares it with the CPU, and is slower for a file that is in the cache.  A file system that has no such way
 * is read as usual, and cairn_tensor_is_direct is 0. */
enum { CAIRN_TENSOR_DIRECT = 1 };
int cairn_tensor_open_with(const char *path, unsigned flags, struct cairn_tensor_file **out,
                           struct cairn_tensor_error *err);
int cairn_tensor_is_direct(const struct cairn_tensor_file *f);

/* Tensors by number, from 0, in the order of their data. */
size_t cairn_tensor_count(const struct cairn_tensor_file *f);
int cairn_tensor_get(const struct cairn_tensor_file *f, size_t i, struct cairn_tensor_info *out);
/* The number of a tensor; SIZE_MAX if there is none of this name. */
size_t cairn_tensor_find(const struct cairn_tensor_file *f, const char *name);

/* The strings of __metadata__, from 0; -1 when i is behind the last. */
size_t cairn_tensor_meta_count(const struct cairn_tensor_file *f);
int cairn_tensor_meta_get(const struct cairn_tensor_file *f, size_t i, const char **key, const char **value);

/* Bytes of one element; 0 for a name that is no dtype of this library. */
size_t cairn_tensor_dtype_bytes(const char *dtype);

/* Elements first … first+n-1 of tensor i into the caller's memory.  dtype NULL: as they are in the file.  Large reads
 * are done by several threads: `threads` of them, 0 for as many as there are CPUs. */
int cairn_tensor_read(const struct cairn_tensor_file *f, size_t i, uint64_t first, uint64_t n,
                      const char *dtype, int threads, void *into, size_t into_bytes,
                      struct cairn_tensor_error *err);

/* Writing. */

struct cairn_tensor_writer;

enum {
    CAIRN_TENSOR_REPLACE = 1, /* an existing file may be replaced */
    CAIRN_TENSOR_KEEP_ORDER =
        2, /* data in the given order, instead of the reference writer's (by dtype and name) */
};

/* Of each tensor name, dtype, shape and rank count; the rest is ignored.  meta holds n_meta pairs: key, value, key,
 * value ….  Fails at once if the file exists or the disk has no room for it. */
int cairn_tensor_writer_open(const char *path, const struct cairn_tensor_info *tensors, size_t n,
                             const char *const *meta, size_t n_meta, unsigned flags,
                             struct cairn_tensor_writer **out, struct cairn_tensor_error *err);
/* n bytes of tensor i, from this byte of it on. */
int cairn_tensor_writer_put(struct cairn_tensor_writer *w, size_t i, uint64_t byte, const void *bytes,
                            size_t n, struct cairn_tensor_error *err);
/* Flushes to the disk and gives the file its name.  Fails if some bytes were not put. */
int cairn_tensor_writer_commit(struct cairn_tensor_writer *w, struct cairn_tensor_error *err);
void cairn_tensor_writer_close(
    struct cairn_tensor_writer *w); /* drops what was not committed; accepts NULL */

#ifdef __cplusplus
}
#endif

#endif
