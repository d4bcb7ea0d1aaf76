/* SPDX-License-Identifier: Apache-2.0
 * Talking to the server that runs already: for `cairn ui --url`, `--stop`, and a second `cairn ui`. */
#ifndef CAIRN_WEB_LINK_H
#define CAIRN_WEB_LINK_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>

/* A fresh one-time link.  *found: a server runs. */
int link_ask(bool read_only, struct arena *a, const char **link, bool *found, struct cairn_error *err);
/* Ends the server, and waits until it is gone; jobs go on. */
int link_stop(bool *found, struct cairn_error *err);

#endif
