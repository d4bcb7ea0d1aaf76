/* SPDX-License-Identifier: Apache-2.0
 * Text that a model generated: the keys of `cairn sample --json`. */
#ifndef CAIRN_REPORT_SAMPLES_H
#define CAIRN_REPORT_SAMPLES_H

#include "base/json.h"
#include "train/sample_files.h"

struct sample_text {
    const char *prompt;
    const char *text; /* NUL-terminated; may contain other NULs */
    size_t len;
};

/* step 0: unknown.  The caller frees it. */
/* Files of a video model. */
struct json *report_video_samples(const char *weights, uint64_t step, const char *dir,
                                  const struct sample_file *samples, size_t n);
struct json *report_samples(const char *weights, uint64_t step, const struct sample_text *samples, size_t n);

#endif
