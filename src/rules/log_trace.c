/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_trace.h"

#include "base/match.h"
#include <ctype.h>
#include <string.h>

enum {
    OWN_FAULT = 60, /* Python's own kinds of error, which the program's code is to blame for */
    ANY_FAULT = 46, /* any other that does not speak of the GPU */
    NAMES_VARIABLE = 84,
};

static const struct log_find nothing;

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* The length of an exception's name at s, with its modules; 0: there is none. */
static size_t name_span(const char *s, size_t n)
{
    size_t len = 0;
    while (len < n && is_name(s[len]))
        len++;
    bool ends = len == n || s[len] == ':';
    return ends && len > 3 && isalpha((unsigned char)*s) && s[len - 1] != '.' ? len : 0;
}

/* Launchers end so when a child failed, whatever its failure was; and a person may end anything. */
static bool is_echo(const char *s, size_t n)
{
    return match_any(s, n,
                     "CalledProcessError|ChildFailedError|ProcessExitedException|ProcessRaisedException|"
                     "SystemExit|KeyboardInterrupt|RayTaskError|BrokenProcessPool|EngineDeadError|Warning");
}

static bool speaks_of_gpu(const char *s, size_t n)
{
    return match_any(s, n,
                     "HIP|hip|ROCm|ROCM|rocm|CUDA|cuda|GPU|gfx|amdgpu|MIOpen|miopen|riton|HSA|NCCL|kernel");
}

static bool is_own_fault(const char *s, size_t n)
{
    return match_any(s, n,
                     "ValueError|KeyError|TypeError|AttributeError|IndexError|AssertionError|"
                     "NotImplementedError|ZeroDivisionError|NameError|UnboundLocalError|UnicodeDecodeError|"
                     "OverflowError|StopIteration|RecursionError|PermissionError");
}

/* The exception whose name of len bytes, and then its message, stand at s. */
static struct log_find judge_exception(struct log_trace *t, const char *s, size_t n, size_t len)
{
    if (is_echo(s, len))
        return nothing;
    t->exception = true;
    if (match_any(s, n, "VISIBLE_DEVICES"))
        return (struct log_find){ ISSUE_VISIBLE_DEVICES, NAMES_VARIABLE, RULE_SOFT | RULE_CUDA };
    if (is_own_fault(s, len))
        return (struct log_find){ ISSUE_NOT_ROCM, OWN_FAULT, RULE_SOFT };
    return speaks_of_gpu(s, n) ? nothing : (struct log_find){ ISSUE_NOT_ROCM, ANY_FAULT, RULE_SOFT };
}

void log_trace_begin(struct log_trace *t, size_t at)
{
    if (!t->open)
        t->column = at;
    t->open = t->seen = true;
}

struct log_find log_trace_line(struct log_trace *t, const char *s, size_t n)
{
    if (n <= t->column || s[t->column] == ' ' || s[t->column] == '\t')
        return nothing;
    t->open = false;
    s += t->column;
    n -= t->column;
    size_t len = name_span(s, n);
    return len ? judge_exception(t, s, n, len) : nothing;
}

/* Without its traceback it has to be the first of its line. */
struct log_find log_trace_exception(struct log_trace *t, const char *s, size_t n, size_t at)
{
    while (at && is_name(s[at - 1]))
        at--;
    size_t len = name_span(s + at, n - at);
    return len && (t->seen || !at) ? judge_exception(t, s + at, n - at, len) : nothing;
}

struct log_find log_trace_word(const char *s, size_t n, size_t at)
{
    enum { LOOKS_BAD = 30 };
    size_t from = at > 24 ? at - 24 : 0, to = n - at > 24 ? at + 24 : n;
    if (match_any(s, n, "WARN|arning|INFO|DEBUG|rror_|_error|rrors=|rror rate"))
        return nothing;
    if (match_any(s + from, to - from,
                  " 0 err|0 fail|=0|: 0|no err|No err|o fail|without |if |not fail|never "))
        return nothing;
    return (struct log_find){ ISSUE_UNKNOWN, LOOKS_BAD, RULE_ECHO };
}
