/* SPDX-License-Identifier: Apache-2.0
 * --hang-after of the commands that compute on a GPU: a device that does not answer ends them, with a word. */
#ifndef CAIRN_CLI_WATCH_CALLS_H
#define CAIRN_CLI_WATCH_CALLS_H

#include "base/error.h"

enum { WATCH_DEFAULT_S = 60 };
#define WATCH_OPTION(limit_s)                    \
    OPT_INT(0, "hang-after", limit_s, "SECONDS", \
            "give up when the device does not answer for so long (default 60; 0: never)")

/* first: what is done about a call that never returns, before the process is ended; NULL: nothing. */
int watch_calls(int limit_s, void (*first)(const struct cairn_error *why), struct cairn_error *err);

#endif
