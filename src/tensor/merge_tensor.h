/* SPDX-License-Identifier: Apache-2.0
 * Merging, one tensor: read, widen, add, narrow, write; in pieces on all cores. */
#ifndef CAIRN_TENSOR_MERGE_TENSOR_H
#define CAIRN_TENSOR_MERGE_TENSOR_H

#include "base/block_pool.h"
#include "tensor/merge.h"

/* What happens to a tensor of the base.  Plain data; the plan in merge.c makes it. */
struct merge_job {
    const struct st_tensor *from;
    size_t out;                       /* its number in the writer */
    enum dtype dtype;                 /* of the output */
    const struct lora_module *module; /* its low-rank change, or NULL */
    bool transposed;                  /* the tensor is [in, out] */
    const struct st_tensor *diff;     /* its whole difference, or NULL */
    double diff_scale;                /* the factor of diff, besides that of the options */
    const struct st_tensor *whole;    /* of the LoRA's file, in place of the base's data; or NULL */
    const struct st_tensor *scale;    /* of an fp8 weight, or NULL */
    bool keep_scale;                  /* the output has scales too: number scale_out in the writer */
    size_t scale_out;
    bool written_elsewhere; /* scales: by the job of their weight */
};

struct merge_run {
    const struct tensor_source *base, *lora;
    const struct merge_options *options;
    struct st_writer *writer;
    size_t rescaled;
    uint64_t nan_made, inf_made;
    uint64_t longest;         /* elements of the longest piece */
    struct block_pool blocks; /* of a piece */
};

/* Sizes the working memory for these jobs; block_pool_close(&run->blocks) frees it. */
void merge_run_init(struct merge_run *run, const struct merge_job *jobs, size_t n);

int merge_tensor(struct merge_run *run, const struct merge_job *job, struct cairn_error *err);

#endif
