/* SPDX-License-Identifier: Apache-2.0
 * What `cairn tensor check` found out about a file, and how it is shown. */
#ifndef CAIRN_CLI_TENSOR_CHECK_H
#define CAIRN_CLI_TENSOR_CHECK_H

#include "report/tensor.h"

void check_print_table(const struct checked_file *files, size_t n, bool verbose);

#endif
