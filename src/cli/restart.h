/* SPDX-License-Identifier: Apache-2.0
 * A process whose device is lost becomes a fresh one, which goes on from the last checkpoint.
 *
 * All that it takes is made beforehand, so that it can also be done from the thread that finds another stuck. */
#ifndef CAIRN_CLI_RESTART_H
#define CAIRN_CLI_RESTART_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>

/* argv: from the command's name on.  --resume is added unless it is there. */
void restart_prepare(int argc, char **argv, bool has_resume, struct arena *a);
/* Returns where it cannot, where nothing was prepared, or where it was done three times. */
void restart_now(const struct cairn_error *why);

#endif
