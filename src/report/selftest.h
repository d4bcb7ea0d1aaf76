/* SPDX-License-Identifier: Apache-2.0
 * Kernels against their definitions: the keys of `cairn selftest --json`. */
#ifndef CAIRN_REPORT_SELFTEST_H
#define CAIRN_REPORT_SELFTEST_H

#include "base/json.h"
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

/* The caller frees it. */
struct json *report_selftest(const struct selftest *tests, size_t n);

#endif
