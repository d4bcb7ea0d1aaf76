/* SPDX-License-Identifier: Apache-2.0 */
#include "start/watch_calls.h"

#include "base/exit_code.h"
#include "gpu/watch.h"
#include <unistd.h>

static void (*before_exit)(const struct cairn_error *why);
static const struct message_sink *sink;

/* The thread that made the call is stuck, so nothing can be closed properly. */
static void exit_now(const struct cairn_error *why)
{
    if (before_exit)
        before_exit(why);
    message_error(sink, why);
    _exit(exit_code_of(why));
}

int watch_calls(int limit_s, void (*first)(const struct cairn_error *why),
                const struct message_sink *messages, struct cairn_error *err)
{
    before_exit = first;
    sink = messages;
    return limit_s ? watch_start(limit_s, exit_now, err) : 0;
}
