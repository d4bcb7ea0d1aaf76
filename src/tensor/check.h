/* SPDX-License-Identifier: Apache-2.0
 * Scans tensor files on all cores and judges them. */
#ifndef CAIRN_TENSOR_CHECK_H
#define CAIRN_TENSOR_CHECK_H

#include "tensor/find.h"
#include "tensor/verdict.h"

struct progress;

struct check_options {
    bool details;              /* also return the tensors of healthy files */
    bool direct;               /* bypass the page cache (O_DIRECT) */
    int threads;               /* 0: all */
    struct progress *progress; /* or NULL; counts bytes, the total is set here */
};

struct checked_file {
    struct arena arena; /* holds what is below */
    const char *path;
    const char *format; /* NULL: could not be opened */
    bool named;         /* on the command line */
    size_t n_tensors;
    uint64_t data_bytes;
    struct file_verdict verdict;
    /* Of each tensor; NULL for a healthy file of which no details are wanted, and for an unreadable one. */
    struct st_tensor *tensors;
    struct scan_stats *stats;
    struct tensor_verdict *verdicts;
};

struct checked_files {
    struct arena arena;
    struct found_files found;
    struct checked_file *file; /* malloced */
    size_t n, damaged, skipped, healthy;
    int not_direct; /* files that could not be read directly as requested */
};

/* Checks files, and those below folders.  out is zeroed; fails if there is no tensor file at all. */
int check_files(char *const *paths, size_t n, const struct check_options *o, struct checked_files *out,
                struct cairn_error *err);
void check_release(struct checked_files *c); /* for CLEANUP */

#endif
