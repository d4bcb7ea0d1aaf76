/* SPDX-License-Identifier: Apache-2.0
 * Checks a configuration, or a job of another trainer, without starting anything. */
#ifndef CAIRN_START_CHECK_CONFIG_H
#define CAIRN_START_CHECK_CONFIG_H

#include "train/config_findings.h"

/* Everything lives in the arena.  `shown` is what to call the file if a message names it.  Weights and data need not
 * be there. */
void start_check_config(const char *file, const char *shown, struct arena *a, struct config_findings *out);

#endif
