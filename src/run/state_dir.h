/* SPDX-License-Identifier: Apache-2.0
 * Where cairn keeps what it remembers: $XDG_STATE_HOME/cairn, or ~/.local/state/cairn. */
#ifndef CAIRN_RUN_STATE_DIR_H
#define CAIRN_RUN_STATE_DIR_H

#include "base/arena.h"
#include "base/error.h"

/* The folder, which may not be there yet.  Fails when the environment names neither, or when it is not
 * ours alone to write to (base/own.h). */
int state_dir(const char *const *env, struct arena *a, const char **out, struct cairn_error *err);

#endif
