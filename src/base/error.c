/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The functions behind the macros. */
#undef cairn_fail
#undef cairn_fail_errno
#undef cairn_hint

int cairn_fail(struct cairn_error *err, enum cairn_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    err->code = code;
    err->hint[0] = '\0';
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    return -1;
}

/* A name that is too long gives way: the reason is what counts. */
static void add_reason(struct cairn_error *err, const char *reason)
{
    size_t room = sizeof(err->msg) - sizeof("...: ") - strlen(reason), n = strlen(err->msg);
    bool cut = n > room;
    while (cut && (n > room || (err->msg[n] & 0xc0) == 0x80))
        n--;
    snprintf(err->msg + n, sizeof(err->msg) - n, "%s: %s", cut ? "..." : "", reason);
}

int cairn_fail_errno(struct cairn_error *err, const char *fmt, ...)
{
    int saved = errno;
    va_list ap;
    va_start(ap, fmt);
    err->code = CAIRN_EIO;
    err->hint[0] = '\0';
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    add_reason(err, strerror(saved));
    errno = saved;
    return -1;
}

int cairn_hint(struct cairn_error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
    va_end(ap);
    return -1;
}
