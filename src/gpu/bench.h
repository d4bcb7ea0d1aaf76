/* SPDX-License-Identifier: Apache-2.0
 * Measures how fast a device is, and how much of that each kernel achieves.
 *
 * Each row is timed on the device, best of several rounds, after a warm-up, on random values (zeros use less
 * power and allow higher clocks).  Its ceiling is measured in the same run: the device's own copy for
 * memory-bound kernels, the best copy for transfers to and from the host, the best row of the format for
 * matmuls.  Bytes are the minimum: every input once, every output once.  Results are not checked here;
 * gpu/check.h does that. */
#ifndef CAIRN_GPU_BENCH_H
#define CAIRN_GPU_BENCH_H

#include "gpu/gpu.h"

enum { BENCH_SIZES = 4 };

/* What an op takes, where a row is made of several. */
struct bench_op {
    char op[32], part[32]; /* "linear" of "ffn" */
    double calls, ms;      /* of all calls */
    double flops, bytes;   /* the same */
};

struct bench_result {
    const char *group;            /* "norm": the argument of `cairn bench` */
    const char *name;             /* "layer_norm" */
    const char *format;           /* "bf16"; NULL: bytes */
    const char *way;              /* of several, the one that was chosen: "cublaslt"; NULL: there is one */
    long long sizes[BENCH_SIZES]; /* rows and columns, or what the row has; 0 ends */
    char shape[48];               /* the same in words */
    double ms;
    double rate;    /* GB/s, or TFLOP/s where is_flops */
    double ceiling; /* in the same unit */
    bool is_flops;
    double relative;      /* speed beside the row with weights on the device in `format`; 0: no such row */
    struct bench_op *ops; /* most expensive first; NULL: not measured */
    size_t n_ops;
};
void bench_results_free(struct bench_result *r, size_t n);

struct bench_options {
    const char *const *groups; /* NULL: all; NULL ends */
    double seconds;            /* at most, for each row, after its warm-up */
    bool (*stop)(void); /* called between rows; true ends the run with the results so far.  May be NULL */
    void (*watch)(const char *name, const char *format, size_t done,
                  size_t all); /* before each row; may be NULL */
};

/* The groups there are, in order; NULL ends. */
extern const char *const bench_groups[];
/* *out is malloced. */
int bench_run(struct gpu *g, const struct bench_options *o, struct bench_result **out, size_t *n,
              struct cairn_error *err);

/* TFLOP/s of the best matmul of a format. */
int bench_gemm_rate(struct gpu *g, enum gpu_storage s, double seconds, double *out, struct cairn_error *err);

#endif
