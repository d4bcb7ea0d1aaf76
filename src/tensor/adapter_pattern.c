/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/adapter_pattern.h"

#include "base/str.h"
#include <ctype.h>
#include <string.h>

/* The C library copies what is repeated: matching a group with repeats or stars in it, 99 times, takes
 * minutes.  So only a single character or class can have a count. */
enum { LENGTH_MAX = 512, REPEATS_MAX = 2, REPEAT_DIGITS = 2 };

static int refuse(const char *pattern, const char *at, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EFORMAT, "the pattern \"%.100s\" is not supported, starting at \"%.20s\"",
                      pattern, at);
}

/* After a backslash.  The C library has \w, \s and \b too; \1 and the like would need backtracking. */
static bool add_escape(struct str *to, char c, bool in_class)
{
    if (c == 'd')
        str_add(to, in_class ? "0-9" : "[0-9]");
    else if (!in_class && c && strchr("wWsSbB", c))
        str_addf(to, "\\%c", c);
    else if (ispunct((unsigned char)c) && in_class && !strchr("^-]\\[", c))
        str_addn(to, &c, 1);
    else if (ispunct((unsigned char)c) && !in_class)
        str_addf(to, strchr(".[]{}()*+?^$|\\", c) ? "\\%c" : "%c", c);
    else
        return false;
    return true;
}

/* The class that starts at p; NULL if it is not supported. */
static const char *add_class(struct str *to, const char *p)
{
    str_add(to, "[");
    p++;
    if (*p == '^') {
        str_add(to, "^");
        p++;
    }
    for (const char *first = p; *p && (*p != ']' || p == first); p++) {
        if (*p == '[' || (*p == ']' && p == first))
            return NULL;
        if (*p == '\\') {
            if (!add_escape(to, *++p, true))
                return NULL;
        } else {
            str_addn(to, p, 1);
        }
    }
    str_add(to, "]");
    return *p ? p + 1 : NULL;
}

/* After a repeat these make it lazy or possessive in Python; POSIX would repeat the repeat. */
static bool is_repeat(char c)
{
    return c && strchr("*+?{", c);
}

/* {3}, {1,2} or {1,}. */
static const char *add_repeat(struct str *to, const char *p, int *repeats)
{
    size_t n = strspn(p + 1, "0123456789"), m = p[n + 1] == ',' ? strspn(p + n + 2, "0123456789") : 0;
    const char *end = p + n + 1 + (p[n + 1] == ',' ? m + 1 : 0);
    if (!n || n > REPEAT_DIGITS || m > REPEAT_DIGITS || *end != '}' || ++*repeats > REPEATS_MAX ||
        is_repeat(end[1]))
        return NULL;
    str_addn(to, p, (size_t)(end + 1 - p));
    return end + 1;
}

/* Translates one item of the pattern; NULL if it is not supported. */
static const char *add_next(struct str *to, const char *p, int *repeats)
{
    if (*p == '\\')
        return add_escape(to, p[1], false) ? p + 2 : NULL;
    if (*p == '[')
        return add_class(to, p);
    if (*p == '{')
        return add_repeat(to, p, repeats);
    if (p[0] == '(' && p[1] == '?') {
        str_add(to, "(");
        return p[2] == ':' ? p + 3 : NULL;
    }
    if (is_repeat(*p) && is_repeat(p[1]))
        return NULL;
    str_addn(to, p, 1);
    return p + 1;
}

static int make(const char *pattern, const char *before, regex_t *out, struct cairn_error *err)
{
    CLEANUP(str_release) struct str posix = { 0 };
    int repeats = 0, depth = 0;
    bool behind_group = false;
    if (!*pattern || strlen(pattern) > LENGTH_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "the pattern \"%.60s\" is %s", pattern,
                          *pattern ? "too long" : "empty");
    str_addf(&posix, "^%s(", before);
    for (const char *p = pattern, *next; *p; p = next) {
        next = add_next(&posix, p, &repeats);
        if (!next || (*p == ')' && !depth--) || /* the C library treats a lone one as a literal */
            (*p == '{' && behind_group))
            return refuse(pattern, p, err);
        behind_group = *p == ')';
        depth += *p == '(';
    }
    str_add(&posix, ")$");
    if (regcomp(out, posix.s, REG_EXTENDED | REG_NOSUB))
        return cairn_fail(err, CAIRN_EFORMAT, "\"%.100s\" is not a valid pattern", pattern);
    return 0;
}

int adapter_pattern_make(const char *pattern, regex_t *out, struct cairn_error *err)
{
    return make(pattern, "(.*\\.)?", out, err);
}

int adapter_pattern_make_whole(const char *pattern, regex_t *out, struct cairn_error *err)
{
    return make(pattern, "", out, err);
}

bool adapter_pattern_fits(const regex_t *pattern, const char *module)
{
    return !regexec(pattern, module, 0, NULL, 0);
}
