/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_stack.h"

#include "base/cleanup.h"
#include "base/match.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *call, *library;
} calls[] = {
    { "rocblas_create_handle", "rocBLAS" },
    { "rocblas_initialize", "rocBLAS" },
    { "hipblasCreate", "hipBLAS" },
    { "hipblasLtCreate", "hipBLASLt" },
    { "miopenCreate", "MIOpen" },
    { "hipsolverDnCreate", "hipSOLVER" },
    { "rocsparse_create_handle", "rocSPARSE" },
    { "rocfft_setup", "rocFFT" },
};

/* Other letters may follow: miopenCreateConvolutionDescriptor is no start. */
void log_stack_see_call(struct log_stack *t, const char *s, size_t n, size_t at)
{
    for (size_t i = 0; i < ARRAY_LEN(calls) && !t->call; i++) {
        size_t len = strlen(calls[i].call);
        if (n - at < len || memcmp(s + at, calls[i].call, len) != 0)
            continue;
        char next = at + len < n ? s[at + len] : ' ';
        if (isalnum((unsigned char)next) || (next == '_' && calls[i].call[0] != 'r') || next == '=')
            continue;
        t->call = calls[i].call;
        t->library = calls[i].library;
    }
}

void log_stack_begin(struct log_stack *t, const char *s, size_t n)
{
    t->open = match_any(s, n, "Current thread|Stack (");
    if (t->open)
        t->n = 0;
}

/* Of a path what tells a person where it is: what stands behind site-packages, or else the last two names. */
static const char *short_path(const char *path, size_t *n)
{
    static const char mark[] = "site-packages";
    const char *end = path + *n, *at = memmem(path, *n, mark, strlen(mark));
    if (at) {
        at += strlen(mark);
        at += at < end;
    } else {
        int slashes = 0;
        for (at = end; at > path && slashes < 2; at--)
            slashes += at[-1] == '/' || at[-1] == '\\';
        at += slashes == 2;
    }
    *n = (size_t)(end - at);
    return at;
}

/* File "torch/nn/modules/linear.py", line 125 in forward.  A traceback has a comma before "in". */
void log_stack_frame(struct log_stack *t, const char *s, size_t n, size_t at)
{
    static const char head[] = "File \"";
    const char *end = s + n, *from = memmem(s + at, n - at, head, strlen(head));
    if (!t->open || t->n == LOG_STACK_FRAMES || !from)
        return;
    from += strlen(head);
    const char *quote = memchr(from, '"', (size_t)(end - from));
    const char *line = quote ? memmem(quote, (size_t)(end - quote), " line ", 6) : NULL;
    const char *in = line ? memmem(line, (size_t)(end - line), " in ", 4) : NULL;
    if (!in || in[-1] == ',' || *from == '<')
        return;
    size_t len = (size_t)(quote - from);
    const char *path = short_path(from, &len);
    snprintf(t->frame[t->n++], LOG_STACK_TEXT, "%.*s%.*s", (int)len, path, (int)(end - line), line);
}
