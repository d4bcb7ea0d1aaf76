/* SPDX-License-Identifier: Apache-2.0
 * Exits with a message if a device does not respond: --hang-after of the commands that compute on a GPU. */
#ifndef CAIRN_START_WATCH_CALLS_H
#define CAIRN_START_WATCH_CALLS_H

#include "base/message_sink.h"

enum { WATCH_DEFAULT_S = 60 };

/* first is called before the process exits because a call hangs; may be NULL.  limit_s 0: no limit.
 * The sink must live as long as the GPU is in use. */
int watch_calls(int limit_s, void (*first)(const struct cairn_error *why),
                const struct message_sink *messages, struct cairn_error *err);

#endif
