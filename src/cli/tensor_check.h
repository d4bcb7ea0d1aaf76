/* SPDX-License-Identifier: Apache-2.0
 * What `cairn tensor check` found out about a file, and how it is shown. */
#ifndef CAIRN_CLI_TENSOR_CHECK_H
#define CAIRN_CLI_TENSOR_CHECK_H

#include "tensor/verdict.h"

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

void check_print_table(const struct checked_file *files, size_t n, bool verbose);
void check_print_json(const struct checked_file *files, size_t n);

#endif
