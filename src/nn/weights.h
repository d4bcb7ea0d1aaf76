/* SPDX-License-Identifier: Apache-2.0
 * Memory on a device for the parameters of a table, or for their gradients (f32, no bytes).
 *
 * A matrix in bytes is int8 or fp8 (e4m3) with a factor for each row, the row's largest magnitude becoming the largest
 * code.  A product needs it in the storage format: weights_matrix makes that just before, in one room that all share.  Where
 * the device has no working kernel for it, the host does the same, with the same bits, slowly. */
#ifndef CAIRN_NN_WEIGHTS_H
#define CAIRN_NN_WEIGHTS_H

#include "gpu/offload.h"
#include "nn/params.h"
#include "tensor/dtype.h"

enum weights_bytes { WEIGHTS_INT8, WEIGHTS_FP8 };

/* Matrices that may live on the host: those of a kind in pieces of the same length, one after the other.  Nothing else may
 * lie between. */
struct weights_blocks {
    enum param_kind kind;
    size_t first, numbers, pieces; /* from which number on; of one piece */
};

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
    void *room;                   /* for the largest matrix in bytes, widened */
    struct weights_help *help;    /* NULL: there are no bytes */
    struct weights_blocks blocks; /* pieces 0: none */
    void *on_device;              /* they, on the device */
    struct weights_away *away;    /* or on the host; NULL: not */
    float *master; /* somebody's f32 copy of the matrices, which weights_put fills too; may be NULL */
    bool master_on_host;
};

/* Zeroed. */
int weights_open(struct weights *w, struct gpu *g, const struct params *p, enum gpu_storage storage,
                 enum weights_bytes format, struct cairn_error *err);
/* With blocks that may move to the host, or begin there. */
int weights_open_blocks(struct weights *w, struct gpu *g, const struct params *p, enum gpu_storage storage,
                        enum weights_bytes format, const struct weights_blocks *blocks, bool on_host,
                        struct cairn_error *err);
void weights_close(struct weights *w);
/* What weights_open takes of the device, where all of it is there. */
size_t weights_size(const struct params *p, enum gpu_storage storage);
/* And where the blocks are on the host: of the device; of the host. */
size_t weights_size_away(const struct params *p, enum gpu_storage storage, const struct weights_blocks *b,
                         size_t *host);

/* Moves the blocks, with their numbers.  On the host they take part in the same calls; before their matrices are asked for,
 * weights_need has a piece brought over (and `next`, if it is another, after it), and weights_passed lets it go. */
int weights_move_blocks(struct weights *w, bool to_host, struct cairn_error *err);
int weights_need(const struct weights *w, struct gpu_stream *s, size_t piece, size_t next,
                 struct cairn_error *err);
int weights_passed(const struct weights *w, struct gpu_stream *s, size_t piece, struct cairn_error *err);
int weights_clear(const struct weights *w, const struct params *p, struct gpu_stream *s,
                  struct cairn_error *err);

float *weights_vector(const struct weights *w, const struct param *p);
/* Before numbers that lie on the host are changed there: no copy of them is under way, or kept, after it. */
int weights_change(const struct weights *w, struct cairn_error *err);
/* Where a parameter lies, on the device or on the host, and its kind there (but of bytes). */
void *weights_place(const struct weights *w, const struct param *p, enum dtype *t, bool *on_host);
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
