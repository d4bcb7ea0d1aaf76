/* SPDX-License-Identifier: Apache-2.0
 * Memory on a device for the parameters of a table, or for their gradients (f32, never quantized).
 *
 * A quantized matrix is int8 or fp8 (e4m3) with a scale for each row; the row's largest magnitude
 * becomes the largest code.  A product needs it in the storage format: weights_matrix dequantizes it
 * just before, into one buffer that all of them share.  Where the device has no working kernel for
 * that, the host does it, slowly and with the same bits. */
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

/* Whether the host dequantizes, and since which error of the device. */
struct weights_host_dequant {
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
    void *dequantized;                         /* as large as the largest quantized matrix */
    struct weights_host_dequant *host_dequant; /* NULL: nothing is quantized */
    struct weights_blocks blocks;
    void *block_memory;                /* the blocks on the device; NULL while they are offloaded */
    struct weights_offload *offloaded; /* the blocks on the host; NULL: they are on the device */
    float *master; /* somebody's f32 copy of the matrices, which weights_put fills too; may be NULL */
    bool master_on_host;
};

/* Zeroed. */
int weights_open(struct weights *w, struct gpu *g, const struct params *p, enum gpu_storage storage,
                 enum weights_format format, struct cairn_error *err);
/* With blocks that can be offloaded, or are from the start. */
struct weights_options {
    enum gpu_storage storage;
    enum weights_format format;
    const struct weights_blocks *blocks;
    bool offload;
};
int weights_open_blocks(struct weights *w, struct gpu *g, const struct params *p,
                        const struct weights_options *o, struct cairn_error *err);
void weights_close(struct weights *w);
/* Bytes that weights_open takes of the device, with nothing offloaded. */
size_t weights_size(const struct params *p, enum gpu_storage storage);
/* The same with the blocks offloaded; *host gets the bytes of the host. */
size_t weights_size_offloaded(const struct params *p, enum gpu_storage storage,
                              const struct weights_blocks *b, size_t *host);

/* Moves the blocks with their values. All calls work on offloaded blocks too. Before their matrices are asked
 * for, weights_need brings a piece to the device (and then `next`, if it is another), and weights_passed lets
 * it go. */
int weights_move_blocks(struct weights *w, bool to_host, struct cairn_error *err);
int weights_need(const struct weights *w, struct gpu_stream *s, size_t piece, size_t next,
                 struct cairn_error *err);
int weights_passed(const struct weights *w, struct gpu_stream *s, size_t piece, struct cairn_error *err);
int weights_clear(const struct weights *w, const struct params *p, struct gpu_stream *s,
                  struct cairn_error *err);

float *weights_vector(const struct weights *w, const struct param *p);
/* Call it before values on the host are changed: after it no copy of them is under way or on the device. */
int weights_change(const struct weights *w, struct cairn_error *err);
/* Where a parameter lies, on the device or on the host, and its type there (not of a quantized one). */
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
