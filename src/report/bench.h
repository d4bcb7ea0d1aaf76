/* SPDX-License-Identifier: Apache-2.0
 * Measurements of a device: the keys of `cairn bench --json`. */
#ifndef CAIRN_REPORT_BENCH_H
#define CAIRN_REPORT_BENCH_H

#include "base/json.h"
#include "gpu/bench.h"

/* The caller frees it. */
struct json *report_bench(const struct gpu_info *g, const struct bench_result *r, size_t n);

#endif
