/* SPDX-License-Identifier: Apache-2.0
 * `cairn run --history` and `--log`, and the names by which other commands know a run: "last", "#2", its folder's. */
#ifndef CAIRN_CLI_RUN_HISTORY_H
#define CAIRN_CLI_RUN_HISTORY_H

#include <stdbool.h>

/* The exit code.  A table has the newest runs, all of them only if asked; JSON always has all. */
int run_history(bool all, bool json);
/* The log of a run, on stdout. */
int run_log(const char *name);

#endif
