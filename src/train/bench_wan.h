/* SPDX-License-Identifier: Apache-2.0
 * How fast a block of a Wan model trains: forward, recomputation and backward of one sample, with a LoRA of
 * rank 32 over all its linears and gradient checkpointing, on random weights.
 *
 * The time of a block is the difference between models of 7 and of 3 blocks, divided by 4, so that
 * embeddings, the head and the loss cancel; so does what the three windows of streamed blocks save. */
#ifndef CAIRN_TRAIN_BENCH_WAN_H
#define CAIRN_TRAIN_BENCH_WAN_H

#include "gpu/bench.h"

struct bench_wan_options {
    const char *model; /* one of bench_wan_models; NULL: all that suit the device */
    const char *base;  /* one of bench_wan_bases; NULL: all */
    size_t tokens;     /* 0: those of 17 frames of 480 x 832, or a few on the CPU */
    bool profile;      /* fill bench_result.ops */
    double seconds;    /* at most, for each row */
    bool (*stop)(void);
    void (*watch)(const char *name, const char *format, size_t done, size_t all);
};

extern const char *const bench_wan_models[]; /* "14B"; NULL ends */
/* Where the frozen weights of the blocks are, and in what format: "device", "fp8", "int8", "host". */
extern const char *const bench_wan_bases[];

/* *out is malloced: bench_results_free.  sizes are tokens, hidden size, MLP size and heads; `way` is the base. */
int bench_wan_run(struct gpu *g, const struct bench_wan_options *o, struct bench_result **out, size_t *n,
                  struct cairn_error *err);

#endif
