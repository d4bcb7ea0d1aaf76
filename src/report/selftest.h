/* SPDX-License-Identifier: Apache-2.0
 * Kernels against their definitions: the keys of `cairn selftest --json`. */
#ifndef CAIRN_REPORT_SELFTEST_H
#define CAIRN_REPORT_SELFTEST_H

#include "base/json.h"
#include "gpu/selftest.h"

/* The caller frees it. */
struct json *report_selftest(const struct selftest *tests, size_t n);

#endif
