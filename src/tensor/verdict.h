/* SPDX-License-Identifier: Apache-2.0
 * Is a tensor file whole?  A judgement from names, shapes and the statistics of a scan; nothing is read here.
 *
 * NaN and Inf are damage wherever they are, and so is a wrong checksum.  Zeros are not always: a bias, a fresh LoRA's
 * second matrix or an optimizer's state may be all zero by right.  So an all-zero or constant tensor is damage only if
 * it is a cached latent or text embedding, if every weight of the file is like that, or if it is a matrix whose twins in
 * other blocks are not.  Otherwise its verdict is said, but the file counts as healthy. */
#ifndef CAIRN_TENSOR_VERDICT_H
#define CAIRN_TENSOR_VERDICT_H

#include "tensor/scan.h"

enum tensor_health { /* from good to bad */
                     TENSOR_OK,
                     TENSOR_SKIPPED,    /* a dtype we cannot scan: nobody looked at the numbers */
                     TENSOR_SUSPICIOUS, /* half of it zero, numbers that cannot be */
                     TENSOR_CONSTANT,
                     TENSOR_ALL_ZERO,
                     TENSOR_HAS_INF,
                     TENSOR_HAS_NAN,
                     TENSOR_BAD_CHECKSUM, /* the bytes are not those that the file says */
                     TENSOR_TRUNCATED,
                     TENSOR_UNREADABLE,
                     TENSOR_COUNT,
};
const char *tensor_health_name(enum tensor_health v); /* "all-zero" */

struct tensor_verdict {
    enum tensor_health verdict;
    bool damaged;
    const char *why; /* NULL when there is nothing to say */
};

struct file_verdict {
    /* Of the worst damaged tensor; else TENSOR_SKIPPED if one was, or TENSOR_OK. */
    enum tensor_health verdict;
    bool damaged;
    size_t n_damaged, n_skipped; /* tensors */
    const char *name;            /* of that tensor; NULL when the verdict is about the file */
    const char *why, *todo;
};

/* out has an element for each tensor of the source; text is in the arena. */
void verdict_judge(const struct tensor_source *src, const struct scan_stats *stats, struct arena *a,
                   struct tensor_verdict *out, struct file_verdict *file);
/* A file that could not be opened or read to its end. */
void verdict_unread(const char *path, const struct cairn_error *err, struct arena *a,
                    struct file_verdict *file);

#endif
