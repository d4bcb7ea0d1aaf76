/* SPDX-License-Identifier: Apache-2.0
 * What is wrong with a configuration: the keys of `cairn config check --json`. */
#ifndef CAIRN_REPORT_CONFIG_CHECK_H
#define CAIRN_REPORT_CONFIG_CHECK_H

#include "base/json.h"
#include "train/config_findings.h"

/* The caller frees it. */
struct json *report_config(const struct config_findings *f);

#endif
