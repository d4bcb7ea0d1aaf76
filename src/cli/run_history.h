/* SPDX-License-Identifier: Apache-2.0
 * `cairn run --history` and `--log`, and the names by which other commands know a run: "last", "#2", its folder's. */
#ifndef CAIRN_CLI_RUN_HISTORY_H
#define CAIRN_CLI_RUN_HISTORY_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>

/* The exit code.  A table has the newest runs, all of them only if asked; JSON always has all. */
int run_history(bool all, bool json);
/* The log of a run, on stdout. */
int run_log(const char *name);
/* The folder of the run of this name; NULL if it is no such name.  Fails where there is no such run. */
int run_history_dir(const char *name, struct arena *a, const char **dir, struct cairn_error *err);

#endif
