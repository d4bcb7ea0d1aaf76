/* SPDX-License-Identifier: Apache-2.0
 * What `cairn selftest` found, as a table to paste into a report and as JSON. */
#ifndef CAIRN_CLI_SELFTEST_PRINT_H
#define CAIRN_CLI_SELFTEST_PRINT_H

#include "gpu/check.h"
#include "gpu/conversions.h"

/* One device; the strings of results belong to the tables of kernels. */
struct selftest {
    struct gpu_info info;
    struct check_result *results; /* malloced */
    size_t n;
    struct conversion conversions[CONVERSIONS];
    bool has_conversions;
    bool lost; /* before the last check */
};

void selftest_print(const struct selftest *t);
void selftest_print_json(const struct selftest *tests, size_t n);

#endif
