/* SPDX-License-Identifier: Apache-2.0
 * Text that a model generated: the keys of `cairn sample --json`. */
#ifndef CAIRN_REPORT_SAMPLES_H
#define CAIRN_REPORT_SAMPLES_H

#include "base/json.h"

struct sample_text {
    const char *prompt;
    const char *text; /* NUL-terminated, and may hold more of them before its end */
    size_t len;
};

/* step 0: not known.  The caller frees it. */
struct json *report_samples(const char *weights, uint64_t step, const struct sample_text *samples, size_t n);

#endif
