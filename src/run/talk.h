/* SPDX-License-Identifier: Apache-2.0
 * How the supervisor speaks: it hands finished sentences, and commands to paste, to whoever prints. */
#ifndef CAIRN_RUN_TALK_H
#define CAIRN_RUN_TALK_H

#include "base/cleanup.h"

struct talk {
    void (*say)(void *context, const char *text);    /* one line, without its end */
    void (*remedy)(void *context, const char *text); /* lines that a shell can run */
    void *context;
};

void talk_say(const struct talk *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
