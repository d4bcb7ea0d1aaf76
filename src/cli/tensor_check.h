/* SPDX-License-Identifier: Apache-2.0
 * Prints the results of `cairn tensor check` as a table. */
#ifndef CAIRN_CLI_TENSOR_CHECK_H
#define CAIRN_CLI_TENSOR_CHECK_H

#include "report/tensor.h"

void check_print_table(const struct checked_files *c, bool verbose);

#endif
