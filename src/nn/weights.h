/* SPDX-License-Identifier: Apache-2.0
 * Memory on a device for the parameters of a table, or for their gradients (f32, no bytes).
 *
 * A matrix in bytes is int8 or fp8 (e4m3) with a factor for each row, the row's largest magnitude becoming the largest
 * code.  A product needs it in the storage format: weights_matrix makes that just before, in one room that all share.  Where
 * the device has no working kernel for it, the host does the same, with the same bits, slowly. */
#ifndef CAIRN_NN_WEIGHTS_H
#define CAIRN_NN_WEIGHTS_H

#include "gpu/gpu.h"
#include "nn/params.h"
#include "tensor/dtype.h"

enum weights_bytes { WEIGHTS_INT8, WEIGHTS_FP8 };

/* From when the device failed to widen bytes. */
struct weights_help {
    bool by_host;
    struct cairn_error why;
};

struct weights {
    struct gpu *g;
    enum gpu_storage storage; /* of the matrices */
    enum weights_bytes format;
    void *matrices;
    float *vectors;
    uint8_t *bytes;
    float *scales;
    void *room;                /* for the largest matrix in bytes, widened */
    struct weights_help *help; /* NULL: there are no bytes */
    float *master; /* somebody's f32 copy of the matrices, which weights_put fills too; may be NULL */
};

/* Zeroed. */
int weights_open(struct weights *w, struct gpu *g, const struct params *p, enum gpu_storage storage,
                 enum weights_bytes format, struct cairn_error *err);
void weights_close(struct weights *w);
/* What weights_open takes of the device. */
size_t weights_size(const struct params *p, enum gpu_storage storage);
int weights_clear(const struct weights *w, const struct params *p, struct gpu_stream *s,
                  struct cairn_error *err);

float *weights_vector(const struct weights *w, const struct param *p);
/* Where a parameter that is not in bytes lies, and its kind there. */
void *weights_place(const struct weights *w, const struct param *p, enum dtype *t);
/* The matrix in the storage format; of one in bytes it is queued, and good until the next call. */
int weights_matrix(const struct weights *w, struct gpu_stream *s, const struct param *p, void **out,
                   struct cairn_error *err);

/* Numbers of a parameter from and to the host, in f32; waits for it. */
int weights_put(const struct weights *w, const struct param *p, const float *from, struct cairn_error *err);
int weights_get(const struct weights *w, const struct param *p, float *into, struct cairn_error *err);

/* The same from a copy of the weights that lies on the host. */
void weights_read(const struct weights *copy, const struct param *p, float *into);

size_t storage_size(enum gpu_storage s); /* the bytes of a number */
enum dtype storage_dtype(enum gpu_storage s);

#endif
