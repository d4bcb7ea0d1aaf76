/* SPDX-License-Identifier: Apache-2.0
 * Checks every kernel on every device against its reference. */
#ifndef CAIRN_GPU_SELFTEST_H
#define CAIRN_GPU_SELFTEST_H

#include "gpu/check.h"
#include "gpu/conversions.h"

struct selftest_options {
    const char *device, *only; /* only this device, and kernels with this in their name; NULL: all */
    bool debug;                /* kernels check indices and values */
    bool (*is_stopped)(void);
};

/* One device; the strings of results belong to the tables of kernels. */
struct selftest {
    struct gpu_info info;
    struct check_result *results; /* malloced */
    size_t n;
    struct conversion conversions[CONVERSIONS];
    bool has_conversions;
    bool lost;  /* before the last check */
    bool wrong; /* something is */
};

struct selftests {
    struct arena arena;
    struct selftest *device;
    size_t n;
    bool wrong; /* something is, on one of them */
};

/* t is zeroed.  A device whose name is given and that cannot be opened is an error. */
int selftest_run(const struct selftest_options *o, struct selftests *t, struct cairn_error *err);
void selftest_release(struct selftests *t); /* for CLEANUP */

#endif
