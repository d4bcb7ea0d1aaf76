/* SPDX-License-Identifier: Apache-2.0
 * `cairn run --history` and `--log`. */
#ifndef CAIRN_CLI_RUN_HISTORY_H
#define CAIRN_CLI_RUN_HISTORY_H

#include <stdbool.h>

/* Returns the exit code.  The table has the newest runs unless `all`; JSON always has all. */
int run_history(bool all, bool json);
/* The log of a run, on stdout. */
int run_log(const char *name);

#endif
