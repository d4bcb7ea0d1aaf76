/* SPDX-License-Identifier: Apache-2.0
 * Judges whether a tensor file is intact, from names, shapes and the statistics of a scan; reads nothing
 * itself.
 *
 * NaN, Inf and a wrong checksum are always damage.  Zeros are not: a bias, the up matrix of a new LoRA or
 * optimizer state may be all zero.  So an all-zero or constant tensor is damage only if it is a cached latent
 * or text embedding, if every weight of the file is like that, or if it is a matrix and the same matrix of
 * other blocks is not.  Otherwise its verdict is reported, but the file counts as healthy. */
#ifndef CAIRN_TENSOR_VERDICT_H
#define CAIRN_TENSOR_VERDICT_H

#include "tensor/scan.h"

enum tensor_health { /* from good to bad */
                     TENSOR_OK,
                     TENSOR_SKIPPED,    /* a dtype that cannot be scanned: its values were not checked */
                     TENSOR_SUSPICIOUS, /* half of it zero, or implausible values */
                     TENSOR_CONSTANT,
                     TENSOR_ALL_ZERO,
                     TENSOR_HAS_INF,
                     TENSOR_HAS_NAN,
                     TENSOR_BAD_CHECKSUM, /* the bytes do not match the file's checksum */
                     TENSOR_TRUNCATED,
                     TENSOR_UNREADABLE,
                     TENSOR_COUNT,
};
const char *tensor_health_name(enum tensor_health v); /* "all-zero" */

struct tensor_verdict {
    enum tensor_health verdict;
    bool damaged;
    const char *why; /* NULL: no remark */
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
