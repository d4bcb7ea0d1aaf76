/* SPDX-License-Identifier: Apache-2.0
 * Tensor files: the keys of `cairn tensor ls|check|diff|convert|extract --json`. */
#ifndef CAIRN_REPORT_TENSOR_H
#define CAIRN_REPORT_TENSOR_H

#include "base/json.h"
#include "tensor/check.h"
#include "tensor/compare.h"
#include "tensor/convert.h"

/* The caller frees what the report_ functions return.  `only`: patterns of names; none: all. */

struct tensor_total {
    size_t n;
    uint64_t elements, bytes;
};
struct tensor_total tensor_total(const struct tensor_source *s, const char *const *only, size_t n_only);
/* One file: an object; several: a list of objects. */
struct json *report_tensor_list(const struct tensor_source *s, size_t n, bool several,
                                const char *const *only, size_t n_only);

struct json *report_tensor_check(const struct checked_files *c);

struct json *report_tensor_diff(const struct comparison *k); /* after compare_run */
struct json *report_tensor_convert(const char *in, const char *out, const struct convert_report *r);
struct json *report_tensor_extract(const char *in, const char *out, const struct convert_report *r);

#endif
