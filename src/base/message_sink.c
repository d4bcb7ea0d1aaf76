/* SPDX-License-Identifier: Apache-2.0 */
#include "base/message_sink.h"

#include "base/arena.h"
#include <stdarg.h>

void message_say(const struct message_sink *s, const char *fmt, ...)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(&a, fmt, ap);
    va_end(ap);
    s->say(s->context, text);
}

void message_commands(const struct message_sink *s, const char *text)
{
    s->commands(s->context, text);
}

void message_error(const struct message_sink *s, const struct cairn_error *err)
{
    s->error(s->context, err);
}
