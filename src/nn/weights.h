/* SPDX-License-Identifier: Apache-2.0
 * Memory on a device for the parameters of a table, or for their gradients (f32, never quantized).
 *
 * A quantized matrix is int8 or fp8 (e4m3) with a scale for each row; the row's largest magnitude
 * becomes the largest code.  A product needs it in the storage format: weights_matrix dequantizes it
 * just before, into one buffer that all of them share.  Where the device has no working kernel for
 * that, the host does it, slowly and with the same bits.  While weights are loaded, the buffer is free
 * for rows that are to be quantized (param_quantize.h). */
#ifndef CAIRN_NN_WEIGHTS_H
#define CAIRN_NN_WEIGHTS_H

#include "gpu/offload.h"
#include "nn/params.h"
#include "tensor/dtype.h"

enum weights_format { WEIGHTS_INT8, WEIGHTS_FP8 }; /* of quantized matrices */

/* Matrices that can be offloaded to the host: a run of one kind, divided into pieces of the same length. No
 * other parameter of that kind lies between them. */
struct weights_blocks {
    enum param_kind kind;
    size_t first, numbers, pieces; /* the first number; values of a piece; 0 pieces: none */
};

/* Whether the host does it, and since which error of the device. */
struct weights_by_host {
    bool active;
    struct cairn_error why;
};

struct weights {
    struct gpu *g;
    enum gpu_storage storage; /* of the matrices */
    enum weights_format format;
    void *matrices;
    float *vectors;
    uint8_t *quantized;
    float *scales;
    void *dequantized;                                 /* as large as the largest quantized matrix */
    struct weights_by_host *host_dequant, *host_quant; /* NULL: nothing is quantized */
    struct weights_blocks blocks;
    void **block_memory; /* of each block on the device; NULL: it is not there */
    size_t streamed;     /* blocks that are on the host and pass through windows of the device */
    bool copies;         /* the resident blocks are on the host too */
    bool idle;           /* the resident blocks are not on the device */
    struct weights_offload *offloaded; /* what is on the host; NULL: nothing */
    float *master; /* somebody's f32 copy of the matrices, which weights_put fills too; may be NULL */
    bool master_on_host;
};

/* Zeroed. */
int weights_open(struct weights *w, struct gpu *g, const struct params *p, enum gpu_storage storage,
                 enum weights_format format, struct cairn_error *err);
/* With blocks that can be offloaded. */
struct weights_options {
    enum gpu_storage storage;
    enum weights_format format;
    const struct weights_blocks *blocks;
    size_t streamed; /* blocks on the host from the start; at most all */
    bool copies, idle;
    const struct weights *beside; /* of another base, whose windows it may share; may be NULL */
};
int weights_open_blocks(struct weights *w, struct gpu *g, const struct params *p,
                        const struct weights_options *o, struct cairn_error *err);
void weights_close(struct weights *w);
/* Bytes that weights_open takes of the device, with all blocks resident. */
size_t weights_size(const struct params *p, enum gpu_storage storage);
/* Of a block, on the device or on the host; of the windows through which so many blocks are streamed. */
size_t weights_block_size(const struct weights_blocks *b, enum gpu_storage storage);
size_t weights_windows_size(const struct weights_blocks *b, enum gpu_storage storage, size_t streamed);

/* Moves blocks with their values until so many are streamed.  If the host has no memory, or a copy fails, they
 * stay where they were; if only the windows do not fit on the device yet, it fails, but they have moved.  All
 * calls work on offloaded blocks too.  Before their matrices are asked for, weights_need brings a block to the
 * device (and then the next streamed one in the direction of `next`, if that is another), and weights_passed
 * lets it go. */
int weights_move_blocks(struct weights *w, size_t streamed, const struct weights *beside,
                        struct cairn_error *err);
bool weights_is_streamed(const struct weights *w, size_t piece);

/* Two bases that take turns on the device.  Copies on the host of the resident blocks; without them, the values
 * of a base are lost when it is dropped or hands over its memory.  Blocks that are nowhere have no values: what
 * is put into them is dropped. */
int weights_copy_blocks(struct weights *w, const struct weights *beside, struct cairn_error *err);
void weights_drop_copies(struct weights *w);
void weights_drop_blocks(struct weights *w);
/* The device memory of the blocks; the caller waits for work that reads it, before and after. */
void weights_hand_over(struct weights *from, struct weights *to);
int weights_upload_blocks(const struct weights *w, struct cairn_error *err); /* from the copies */
int weights_need(const struct weights *w, struct gpu_stream *s, size_t piece, size_t next,
                 struct cairn_error *err);
int weights_passed(const struct weights *w, struct gpu_stream *s, size_t piece, struct cairn_error *err);
int weights_clear(const struct weights *w, const struct params *p, struct gpu_stream *s,
                  struct cairn_error *err);

float *weights_vector(const struct weights *w, const struct param *p);
/* Call it before values on the host are changed: after it no copy of them is under way or on the device. */
int weights_change(const struct weights *w, struct cairn_error *err);
/* False: it is in a block that is nowhere. */
bool weights_has(const struct weights *w, const struct param *p);
/* Where a parameter lies, on the device or on the host, and its type there (not of a quantized one).  NULL:
 * nowhere. */
void *weights_place(const struct weights *w, const struct param *p, enum dtype *t, bool *on_host);
/* The matrix in the storage format.  To dequantize one is queued; the result is good until the next call. */
int weights_matrix(const struct weights *w, struct gpu_stream *s, const struct param *p, void **out,
                   struct cairn_error *err);

/* Copies the values of a parameter from and to the host, in f32, and waits. */
int weights_put(const struct weights *w, const struct param *p, const float *from, struct cairn_error *err);
int weights_get(const struct weights *w, const struct param *p, float *into, struct cairn_error *err);

/* The same from a copy of the weights that lies on the host. */
void weights_read(const struct weights *copy, const struct param *p, float *into);

size_t storage_size(enum gpu_storage s); /* the bytes of a number */
enum dtype storage_dtype(enum gpu_storage s);

#endif
