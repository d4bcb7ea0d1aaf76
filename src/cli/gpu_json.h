/* SPDX-License-Identifier: Apache-2.0
 * GPUs as JSON: the keys of `cairn gpu --json`.  What is not known is null. */
#ifndef CAIRN_CLI_GPU_JSON_H
#define CAIRN_CLI_GPU_JSON_H

#include "base/json.h"
#include "rules/gpu_libraries.h"
#include "host/facts.h"

/* The caller frees it.  Of the libraries nothing is said where they are NULL. */
struct json *gpu_json(const struct facts *f, const struct gpu_libraries *libraries);

const char *gpu_kind_name(enum gpu_kind k); /* NULL when not known */

#endif
