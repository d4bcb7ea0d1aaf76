/* SPDX-License-Identifier: Apache-2.0
 * The GPUs and the host: the keys of `cairn gpu --json`.  Unknown values are null. */
#ifndef CAIRN_REPORT_GPU_H
#define CAIRN_REPORT_GPU_H

#include "base/json.h"
#include "host/facts.h"
#include "rules/gpu_libraries.h"

/* The caller frees it.  libraries: one element per GPU; NULL omits the key. */
struct json *report_gpus(const struct facts *f, const struct gpu_libraries *libraries);

#endif
