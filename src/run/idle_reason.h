/* SPDX-License-Identifier: Apache-2.0
 * Whether processes that stand still may do so: they wait for somebody, not for a GPU.
 *
 * A server waits for its users.  Ranks of a training listen too, for each other, at any port or where torch tells them
 * with MASTER_PORT.  That a training step was seen says nothing: a server that draws pictures prints the same bars. */
#ifndef CAIRN_RUN_IDLE_REASON_H
#define CAIRN_RUN_IDLE_REASON_H

#include "run/tree.h"
#include <stdbool.h>

/* calls: what the files of GPU calls begin with, or NULL.  A server that has been inside one for so long has no excuse. */
bool idle_is_expected(const struct tree *t, const char *calls, double seconds);

#endif
