/* SPDX-License-Identifier: Apache-2.0
 * Whether idle processes have a good reason: they wait for a user, not for a GPU.
 *
 * A server waits for requests.  Ranks of a distributed training listen too, for each other, at any port or
 * at MASTER_PORT.  A training step in the output proves nothing: a server that generates images prints the
 * same bars. */
#ifndef CAIRN_RUN_IDLE_REASON_H
#define CAIRN_RUN_IDLE_REASON_H

#include "run/tree.h"
#include <stdbool.h>

/* calls: prefix of the files of GPU calls, or NULL.  A server that is inside a GPU call for that long
 * hangs. */
bool idle_is_expected(const struct tree *t, const char *calls, double seconds);

#endif
