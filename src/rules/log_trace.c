/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_trace.h"

#include "base/match.h"
#include <ctype.h>
#include <string.h>

enum {
    OWN_FAULT = 60, /* Python's own kinds of error, which the program's code is to blame for */
    NAMES_VARIABLE = 84,
    ANY_EXCEPTION = 46, /* one of which nothing is known */
    LOOKS_BAD = 30,     /* too little to name a class */
};

enum { BOX = 0xe2 }; /* the first byte of the lines that boxes are drawn with, in UTF-8 */

static const struct log_find nothing;

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The length of an exception's name at s, with its modules; 0: there is none.  Classes start with a capital. */
static size_t name_span(const char *s, size_t n)
{
    enum { SHORTEST = 4 };
    size_t len = 0, class_at = 0;
    for (; len < n && is_name(s[len]); len++)
        class_at = s[len] == '.' ? len + 1 : class_at;
    bool ends = len == n || s[len] == ':';
    return ends && len >= class_at + SHORTEST && isupper((unsigned char)s[class_at]) ? len : 0;
}

/* Launchers end so when a child failed, whatever its failure was; and a person may end anything. */
static bool is_echo(const char *s, size_t n, size_t name)
{
    if (match_any(s, n, "root cause|background process|failed with code|exited with code"))
        return true;
    return match_any(s, name,
                     "CalledProcessError|ChildFailedError|ProcessExitedException|ProcessRaisedException|"
                     "SystemExit|KeyboardInterrupt|RayTaskError|BrokenProcessPool|EngineDeadError|Warning");
}

bool log_trace_speaks_of_gpu(const char *s, size_t n)
{
    return match_any(s, n, "HIP|ROCm|rocBLAS|CUDA|GPU|gfx|amdgpu|MIOpen|riton|HSA|NCCL|kernel");
}

/* A package that is missing or too old; with a library that does not load it may be the machine. */
static bool is_import_fault(const char *s, size_t n, size_t len)
{
    return match_any(s, len, "ImportError|ModuleNotFoundError") && !match_any(s, n, ".so|DLL|.dll");
}

static bool is_own_fault(const char *s, size_t n)
{
    return match_any(s, n,
                     "ValueError|KeyError|TypeError|AttributeError|IndexError|AssertionError|"
                     "NotImplementedError|ZeroDivisionError|NameError|UnboundLocalError|UnicodeDecodeError|"
                     "OverflowError|StopIteration|RecursionError|PermissionError");
}

/* The exception whose name of len bytes, and then its message, stand at s. */
static struct log_find judge_exception(const char *s, size_t n, size_t len)
{
    if (is_echo(s, n, len))
        return nothing;
    if (match_any(s, n, "VISIBLE_DEVICES"))
        return (struct log_find){ ISSUE_VISIBLE_DEVICES, NAMES_VARIABLE, RULE_SOFT | RULE_CUDA };
    if (len == strlen("Error")) /* a program's own word, not an exception of Python */
        return (struct log_find){ ISSUE_UNKNOWN, LOOKS_BAD, RULE_ECHO };
    if (is_own_fault(s, len))
        return (struct log_find){ ISSUE_NOT_ROCM, OWN_FAULT, RULE_SOFT };
    if (log_trace_speaks_of_gpu(s, n))
        return (struct log_find){ ISSUE_UNKNOWN, LOOKS_BAD, RULE_ECHO };
    if (is_import_fault(s, n, len))
        return (struct log_find){ ISSUE_NOT_ROCM, OWN_FAULT, RULE_SOFT };
    return (struct log_find){ ISSUE_NOT_ROCM, ANY_EXCEPTION, RULE_SOFT | RULE_VAGUE };
}

/* Does something other than a launcher's prefix stand before it?  Rich draws a box, Jupyter prints the name, and both end
 * in the first column. */
static bool is_decorated(const char *s, size_t at)
{
    size_t blanks = strspn(s, " ");
    return (unsigned char)s[0] == BOX || (blanks < at && at >= 2 && s[at - 1] == ' ' && s[at - 2] == ' ');
}

void log_trace_begin(struct log_trace *t, const char *s, size_t at)
{
    if (!t->open)
        t->column = is_decorated(s, at) ? 0 : at;
    t->open = t->seen = true;
}

struct log_find log_trace_line(struct log_trace *t, const char *s, size_t n)
{
    if (n <= t->column || strchr(" \t", s[t->column]) || (unsigned char)s[t->column] == BOX)
        return nothing;
    t->open = false;
    s += t->column;
    n -= t->column;
    size_t len = name_span(s, n);
    return len ? judge_exception(s, n, len) : nothing;
}

/* Is it the first of its line, but for the prefix of a logger? */
static bool starts_line(const char *s, size_t at)
{
    while (at && s[at - 1] == ' ')
        at--;
    return !at || strchr(":]|)>-", s[at - 1]);
}

struct log_find log_trace_exception(const struct log_trace *t, const char *s, size_t n, size_t at)
{
    while (at && is_name(s[at - 1]))
        at--;
    size_t len = name_span(s + at, n - at);
    return len && (t->seen || starts_line(s, at)) ? judge_exception(s + at, n - at, len) : nothing;
}

struct log_find log_trace_type(const char *s, size_t n, size_t at)
{
    return is_own_fault(s + at, n - at) ? (struct log_find){ ISSUE_NOT_ROCM, OWN_FAULT, RULE_SOFT } : nothing;
}

struct log_find log_trace_message(const char *s, size_t n, size_t at)
{
    enum { SHORTEST = 8 };
    if (n - at < SHORTEST || log_trace_speaks_of_gpu(s + at, n - at))
        return nothing;
    return (struct log_find){ ISSUE_NOT_ROCM, ANY_EXCEPTION, RULE_SOFT | RULE_VAGUE };
}

struct log_find log_trace_word(const char *s, size_t n, size_t at)
{
    size_t from = at > 24 ? at - 24 : 0, to = n - at > 24 ? at + 24 : n;
    if (match_any(s, n, "WARN|[INFO|INFO:|INFO |DEBUG|error_|_error|errors=|error rate|cannot be preloaded"))
        return nothing;
    if (match_any(s + from, to - from, " 0 err|0 fail|=0|: 0|no err|o fail|without |if |not fail|never "))
        return nothing;
    return (struct log_find){ ISSUE_UNKNOWN, LOOKS_BAD, RULE_ECHO };
}
