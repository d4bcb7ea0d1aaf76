/* SPDX-License-Identifier: Apache-2.0 */
#include "start/watch_calls.h"

#include "base/exit_code.h"
#include "gpu/watch.h"
#include <unistd.h>

static void (*do_first)(const struct cairn_error *why);
static const struct message_sink *sink;

/* The thread that made the call cannot go on, and so cannot end anything in good order. */
static void end_here(const struct cairn_error *why)
{
    if (do_first)
        do_first(why);
    message_error(sink, why);
    _exit(exit_code_of(why));
}

int watch_calls(int limit_s, void (*first)(const struct cairn_error *why),
                const struct message_sink *messages, struct cairn_error *err)
{
    do_first = first;
    sink = messages;
    return limit_s ? watch_start(limit_s, end_here, err) : 0;
}
