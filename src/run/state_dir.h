/* SPDX-License-Identifier: Apache-2.0
 * The state folder of cairn: $XDG_STATE_HOME/cairn, or ~/.local/state/cairn. */
#ifndef CAIRN_RUN_STATE_DIR_H
#define CAIRN_RUN_STATE_DIR_H

#include "base/arena.h"
#include "base/error.h"

/* The folder, which may not exist yet.  Fails if the environment names neither, or if others can write to it
 * (base/own.h). */
int state_dir(const char *const *env, struct arena *a, const char **out, struct cairn_error *err);

#endif
