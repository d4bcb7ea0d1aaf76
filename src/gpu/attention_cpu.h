/* SPDX-License-Identifier: Apache-2.0
 * Attention on the CPU, as defined in kernels/attention.h, with the matmul tiles of cpu_tile.h.
 *
 * One side of the scores (keys; queries for the gradients of keys and values) is packed head by head and
 * streamed past panels of the other, so that scores are in memory as [streamed token][column of the panel]:
 * maxima, sums and exponentials go down columns, a vector of them at a time, and the same values are the
 * packed right operand of the next matmul, whose result is [element of the head][column of the panel]. */
#ifndef CAIRN_GPU_ATTENTION_CPU_H
#define CAIRN_GPU_ATTENTION_CPU_H

#include "gpu/gpu.h"
#include "gpu/kernel_rows.h"
#include "gpu/kernels/attention.h"

/* A matrix of the streamed side.  Its panels are rows of tokens, or with `turned` rows of a head's
 * elements. */
struct attention_streamed {
    const void *at;
    struct attention_stride by;
    bool turned;
};

/* A part of the heads: n heads from (sample, key head) `first` on.  If queries stream, n_shares from `share`
 * on of those that share a key head; if that is not all of them, n is 1 and `sums` accumulates their
 * gradients. */
struct attention_job {
    const struct attention_backward_args
        *a; /* forward fills in what it shares with backward, and these two: */
    const struct attention_args *forward;
    struct attention_streamed streamed[4];
    size_t n_streamed;
    bool keys_stream; /* else the queries */
    size_t first, n;
    size_t share, n_shares;
    float *packed; /* [head that streams][streamed matrix][pitch] */
    size_t pitch;
    float *sums; /* [panel][gradient of keys, of values][ATTENTION_SIZE][column]; NULL: not needed */
};

struct attention_cpu {
    size_t rows, columns; /* of a panel */
    /* Pieces: a block of ATTENTION_CPU_BLOCK tokens of each head that streams; a panel of columns of each
     * other. */
    void (*pack)(void *job, size_t piece);
    void (*forward)(void *job, size_t piece);
    void (*dq)(void *job, size_t piece);
    void (*dkv)(void *job, size_t piece);
};
enum { ATTENTION_CPU_BLOCK = 64 /* streamed tokens at a time: whole panels */ };

/* Elements packed at a time; only the sizes of `a` matter. */
size_t attention_cpu_scratch(const struct gpu *g, enum gpu_storage storage, k_i64 samples,
                             const struct attention_backward_args *a, bool back);
int attention_cpu_forward(struct gpu *g, enum gpu_storage storage, k_i64 samples,
                          const struct attention_args *a, struct cairn_error *err);
/* a->delta is filled in. */
int attention_cpu_backward(struct gpu *g, enum gpu_storage storage, k_i64 samples,
                           const struct attention_backward_args *a, struct cairn_error *err);

#endif
