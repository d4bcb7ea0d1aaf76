/* SPDX-License-Identifier: Apache-2.0
 * A device that does not answer ends the process, with a message: --hang-after of the commands that compute on a GPU. */
#ifndef CAIRN_START_WATCH_CALLS_H
#define CAIRN_START_WATCH_CALLS_H

#include "base/message_sink.h"

enum { WATCH_DEFAULT_S = 60 };

/* first: called about a call that never returns, before the process is ended; NULL: nothing.  limit_s 0: never.
 * The sink outlives the process's use of the GPU. */
int watch_calls(int limit_s, void (*first)(const struct cairn_error *why),
                const struct message_sink *messages, struct cairn_error *err);

#endif
