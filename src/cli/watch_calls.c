/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch_calls.h"

#include "cli/print.h"
#include "gpu/watch.h"
#include <stdio.h>
#include <unistd.h>

static void (*do_first)(const struct cairn_error *why);

/* The thread that made the call cannot go on, and so cannot end anything in good order. */
static void end_here(const struct cairn_error *why)
{
    if (do_first)
        do_first(why);
    int code = print_error(why);
    fflush(stderr);
    _exit(code);
}

int watch_calls(int limit_s, void (*first)(const struct cairn_error *why), struct cairn_error *err)
{
    do_first = first;
    return limit_s ? watch_start(limit_s, end_here, err) : 0;
}
