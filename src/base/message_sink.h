/* SPDX-License-Identifier: Apache-2.0
 * Receives messages for the user from the layers below cli.  They do not print: they pass on complete
 * sentences, commands to paste and errors, and the caller decides where these go. */
#ifndef CAIRN_BASE_MESSAGE_SINK_H
#define CAIRN_BASE_MESSAGE_SINK_H

#include "base/cleanup.h"
#include "base/error.h"

struct message_sink {
    void (*say)(void *context, const char *text);      /* one line, without its end */
    void (*commands)(void *context, const char *text); /* lines that a shell can run */
    void (*error)(void *context, const struct cairn_error *err);
    void *context;
};

void message_say(const struct message_sink *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
void message_commands(const struct message_sink *s, const char *text);
void message_error(const struct message_sink *s, const struct cairn_error *err);

#endif
