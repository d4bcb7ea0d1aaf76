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
#undef cairn_wrap
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

/* At most this many bytes of s, without a part of a character at the end. */
static size_t cut_at(const char *s, size_t most)
{
    size_t n = strnlen(s, most + 1);
    while (n > most || (n && (s[n] & 0xc0) == 0x80))
        n--;
    return n;
}

/* A name that is too long is cut: the reason is what counts. */
static void add_reason(struct cairn_error *err, const char *reason)
{
    size_t n = cut_at(err->msg, sizeof(err->msg) - sizeof("...: ") - strlen(reason));
    bool cut = err->msg[n];
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

int cairn_wrap(struct cairn_error *err, const char *fmt, ...)
{
    enum { REASON_MOST = 400 };
    char reason[REASON_MOST + 1];
    va_list ap;
    va_start(ap, fmt);
    snprintf(reason, sizeof(reason), "%.*s", (int)cut_at(err->msg, REASON_MOST), err->msg);
    vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    add_reason(err, reason);
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
