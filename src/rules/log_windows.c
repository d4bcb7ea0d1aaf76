/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_windows.h"

#include "base/cleanup.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ntstatus.h of the Windows SDK; others do not end programs. */
static const struct windows_status statuses[] = {
    { 0xC0000005, ISSUE_NATIVE_CRASH, 82 }, /* access violation */
    { 0xC0000006, ISSUE_UNKNOWN, 0 },       /* a page could not be read */
    { 0xC0000017, ISSUE_HOST_OOM, 80 },     /* no memory */
    { 0xC000001D, ISSUE_NATIVE_CRASH, 74 }, /* illegal instruction */
    { 0xC000007B, ISSUE_LIB_LOAD, 76 },     /* an image of another kind */
    { 0xC0000094, ISSUE_NATIVE_CRASH, 74 }, /* division by zero */
    { 0xC00000FD, ISSUE_NATIVE_CRASH, 66 }, /* stack overflow */
    { 0xC000012D, ISSUE_HOST_OOM, 84 },     /* the commit limit was reached */
    { 0xC0000135, ISSUE_LIB_LOAD, 80 },     /* a DLL was not found */
    { 0xC0000139, ISSUE_LIB_LOAD, 78 },     /* an entry point was not found */
    { 0xC000013A, ISSUE_UNKNOWN, 0 },       /* Ctrl-C */
    { 0xC0000142, ISSUE_LIB_LOAD, 76 },     /* a DLL failed to initialize */
    { 0xC0000374, ISSUE_NATIVE_CRASH, 76 }, /* heap corruption */
    { 0xC0000409, ISSUE_NATIVE_CRASH, 72 }, /* stack buffer overrun: an abort */
    { 0xC0000417, ISSUE_UNKNOWN, 0 },       /* an invalid argument of the C runtime */
    { 0xC06D007E, ISSUE_UNKNOWN, 0 },       /* a module of a delayed import is missing */
    { 0xC06D007F, ISSUE_UNKNOWN, 0 },       /* so is its procedure */
};

const struct windows_status *log_windows_status(int64_t code)
{
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
        if (code == statuses[i].code)
            return &statuses[i];
    return NULL;
}

bool log_windows_has_status(const char *s, size_t n, size_t at)
{
    char buf[16];
    bool hex = n - at > 2 && s[at] == '0' && (s[at + 1] == 'x' || s[at + 1] == 'X');
    size_t from = at + (hex ? 2 : 0) + (s[at] == '-'), len = 0;
    while (from + len < n &&
           (hex ? isxdigit((unsigned char)s[from + len]) : isdigit((unsigned char)s[from + len])))
        len++;
    if ((hex && len != 8) || (!hex && len != 10) || (at && isalnum((unsigned char)s[at - 1])))
        return false;
    memcpy(buf, s + from, len);
    buf[len] = '\0';
    int64_t code = strtoll(buf, NULL, hex ? 16 : 10);
    return log_windows_status(s[at] == '-' ? ((int64_t)1 << 32) - code : code);
}

bool log_windows_has_path(const char *s, size_t n, size_t at)
{
    if (!at || !isalpha((unsigned char)s[at - 1]) || (at > 1 && isalnum((unsigned char)s[at - 2])))
        return false;
    /* "E:\n" in a program's own text is none: a folder or a prompt has to follow. */
    for (size_t i = at + 2; i < n && !strchr("\"'\t,;|", s[i]); i++)
        if (s[i] == '\\' || s[i] == '>')
            return i > at + 3;
    return false;
}
