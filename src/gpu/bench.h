/* SPDX-License-Identifier: Apache-2.0
 * How fast a device is, and how much of that a kernel gets.
 *
 * Each row is timed on the device, best of several, after a warm-up.  Its ceiling is measured in the same run: the
 * device's own copy for what moves bytes, the best of the copies for what crosses to the host, the best row of the
 * format for what multiplies matrices.  Results are not checked here; gpu/check.h does that. */
#ifndef CAIRN_GPU_BENCH_H
#define CAIRN_GPU_BENCH_H

#include "gpu/gpu.h"

struct bench_result {
    const char *group;  /* "norm": what `cairn bench` takes */
    const char *name;   /* "layer_norm" */
    const char *format; /* "bf16"; NULL: bytes */
    char shape[48];
    double ms;
    double rate;    /* GB/s, or TFLOP/s where is_flops */
    double ceiling; /* in the same unit */
    bool is_flops;
};

/* The groups there are, in order; NULL ends. */
extern const char *const bench_groups[];
/* group NULL: all.  *out is malloced.  `stop` may be NULL; it is asked between rows. */
int bench_run(struct gpu *g, const char *group, bool (*stop)(void), struct bench_result **out, size_t *n,
              struct cairn_error *err);

#endif
