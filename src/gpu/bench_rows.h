/* SPDX-License-Identifier: Apache-2.0
 * The table of what `cairn bench` measures; bench.c does the timing. */
#ifndef CAIRN_GPU_BENCH_ROWS_H
#define CAIRN_GPU_BENCH_ROWS_H

#include "gpu/bench.h"
#include "gpu/blas.h"

enum { BENCH_BUFFERS = 10 };

struct bench {
    struct gpu *g;
    struct blas *blas;
    enum gpu_storage storage; /* of the row that runs */
    size_t bytes;             /* of each buffer */
    void *device[BENCH_BUFFERS];
    void *pageable, *staging;
    void *pattern[GPU_STORAGES]; /* BENCH_PATTERN bytes of random normal numbers, which buffers repeat */
    struct gpu_event *from, *to;
};
enum { BENCH_PATTERN = 4 << 20 };

/* What one run of a row does. */
struct bench_amount {
    double bytes, flops;
    long long sizes[BENCH_SIZES];
    const char *way; /* NULL, or what was chosen */
};

struct bench_row;
typedef int bench_fn(struct bench *b, const struct bench_row *r, struct bench_amount *a,
                     struct cairn_error *err);

enum bench_ceiling { BY_COPY, BY_TRANSFER, BY_MATRIX };
struct bench_row {
    const char *group, *name;
    bench_fn *once; /* queues one run and sets the amount; called many times */
    const char *by; /* a kernel, or a way of blas */
    int inputs;     /* so many buffers hold random numbers */
    int (*prepare)(struct bench *b, struct cairn_error *err); /* the others; may be NULL */
    enum bench_ceiling ceiling;
    bool has_formats, causal, a_transposed, b_transposed;
    int keys;  /* of cross attention; 0: as many as queries.  Of a norm: columns */
    int shape; /* of a convolution: BENCH_CONV_… */
};
extern const struct bench_row bench_rows[];
extern const size_t n_bench_rows;

/* bench_conv.c */
enum {
    BENCH_CONV_96,
    BENCH_CONV_192,
    BENCH_CONV_384,
    BENCH_CONV_384_LOW,
    BENCH_CONV_160,
    BENCH_CONV_256,
    BENCH_CONV_640,
    BENCH_CONV_1024,
    BENCH_CONV_HALVE,
    BENCH_CONV_DOUBLE,
    BENCH_CONV_TIME,
    BENCH_CONV_LAST,
    BENCH_CONVS
};
struct bench_conv_shape {
    int channels, filters, height, width;
    enum {
        BENCH_CONV_WHOLE,   /* 3 × 3 × 3 */
        BENCH_CONV_HALVES,  /* 1 × 3 × 3, every other pixel */
        BENCH_CONV_DOUBLES, /* 1 × 3 × 3 of twice the size */
        BENCH_CONV_TIMES    /* 3 × 1 × 1 */
    } kind;
};
extern const struct bench_conv_shape bench_conv_shapes[BENCH_CONVS];
bench_fn bench_conv, bench_norm_silu;

size_t bench_number_size(enum gpu_storage s);
bool bench_is_cpu(const struct bench *b);
/* A GPU's size, or a CPU's, or an eighth of that for kernels without vectors, which take so much longer. */
long long bench_scale(const struct bench *b, long long gpu, long long cpu);
/* Random normal numbers everywhere in buffer i. */
int bench_fill(struct bench *b, int i, enum gpu_storage s, struct cairn_error *err);

#endif
