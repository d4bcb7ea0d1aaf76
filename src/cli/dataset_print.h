/* SPDX-License-Identifier: Apache-2.0
 * A dataset as a table. */
#ifndef CAIRN_CLI_DATASET_PRINT_H
#define CAIRN_CLI_DATASET_PRINT_H

#include "media/dataset.h"

/* Totals, buckets and problems; with `verbose` a line for every item. */
void dataset_print(const struct dataset *d, bool verbose);

#endif
