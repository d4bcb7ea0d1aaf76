/* SPDX-License-Identifier: Apache-2.0 */
#include "run/talk.h"

#include "base/arena.h"
#include <stdarg.h>

void talk_say(const struct talk *t, const char *fmt, ...)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(&a, fmt, ap);
    va_end(ap);
    t->say(t->context, text);
}
