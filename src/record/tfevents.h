/* SPDX-License-Identifier: Apache-2.0
 * TensorBoard's event files: records with masked CRC32C around messages in protobuf's wire format.
 *
 * Each function appends one record to a byte string; a file is a sequence of records, the version first. */
#ifndef CAIRN_RECORD_TFEVENTS_H
#define CAIRN_RECORD_TFEVENTS_H

#include "base/str.h"
#include <stddef.h>
#include <stdint.h>

/* time is in seconds since 1970. */
void tfevents_add_version(struct str *out, double time);
/* From here on this file replaces what older files have for this step and later ones. */
void tfevents_add_start(struct str *out, double time, uint64_t step);

struct tfevents_scalar {
    const char *tag;
    double value;
};
void tfevents_add_scalars(struct str *out, double time, uint64_t step, const struct tfevents_scalar *values,
                          size_t n);
/* Text is shown as Markdown. */
void tfevents_add_text(struct str *out, double time, uint64_t step, const char *tag, const char *text);

uint32_t tfevents_crc32c(const void *bytes, size_t n);

#endif
