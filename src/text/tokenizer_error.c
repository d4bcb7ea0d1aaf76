/* SPDX-License-Identifier: Apache-2.0 */
#include "text/tokenizer_error.h"

#include <stdarg.h>
#include <stdio.h>

int tokenizer_refuse(struct cairn_error *err, const char *name, const char *fmt, ...)
{
    char what[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    return cairn_fail(err, CAIRN_EFORMAT, "%s: %s", name, what);
}
