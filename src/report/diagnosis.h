/* SPDX-License-Identifier: Apache-2.0
 * The diagnosis of a log: the keys of `cairn diagnose --json`, and the classes of failures. */
#ifndef CAIRN_REPORT_DIAGNOSIS_H
#define CAIRN_REPORT_DIAGNOSIS_H

#include "base/json.h"
#include "rules/diagnose.h"
#include "run/gpu_calls.h"

/* d NULL: only records of GPU calls.  Lists every process of c.  The caller frees it. */
struct json *report_diagnosis(const struct diagnosis *d, const struct gpu_calls *c);
struct json *report_classes(void); /* the caller frees it */

#endif
