/* SPDX-License-Identifier: Apache-2.0 */
#include "web/target.h"

#include "base/str.h"
#include <stdbool.h>
#include <string.h>

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* NULL: a wrong escape, bytes that are not UTF-8, or a control character. */
static const char *decode(const char *raw, size_t n, bool plus, struct arena *a)
{
    char *out = arena_alloc(a, n + 1);
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        char c = raw[i];
        if (c == '%') {
            int high = n - i > 2 ? hex(raw[i + 1]) : -1, low = n - i > 2 ? hex(raw[i + 2]) : -1;
            if (high < 0 || low < 0)
                return NULL;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        out[len++] = c;
    }
    return str_clean_span(out, len) == len ? out : NULL;
}

static const char *parse_path(const char *raw, size_t n, struct arena *a, struct target *out)
{
    const char *end = raw + n;
    for (const char *at = raw; at < end;) {
        const char *from = at + 1; /* behind the slash */
        size_t len = 0;
        while (from + len < end && from[len] != '/')
            len++;
        bool last = from + len == end;
        const char *part = decode(from, len, false, a);
        if (!part)
            return "the path has a wrong escape, a control character, or is not UTF-8";
        if (!strcmp(part, ".") || !strcmp(part, "..") || strchr(part, '/') || (!len && !last))
            return "the path has an empty part, \".\", \"..\" or an encoded slash";
        if (out->n_parts == TARGET_PARTS)
            return "the path has too many parts";
        if (len || out->n_parts) /* "/" alone has no part */
            out->part[out->n_parts++] = part;
        at = from + len;
    }
    return NULL;
}

static const char *parse_query(const char *raw, struct arena *a, struct target *out)
{
    while (*raw) {
        size_t n = strcspn(raw, "&"), name = 0;
        while (name < n && raw[name] != '=')
            name++;
        if (n) {
            if (out->n_pairs == TARGET_PAIRS)
                return "the query has too many values";
            struct target_pair *p = &out->pair[out->n_pairs++];
            p->name = decode(raw, name, true, a);
            p->value = decode(raw + name + (name < n), n - name - (name < n), true, a);
            if (!p->name || !p->value)
                return "the query has a wrong escape, a control character, or is not UTF-8";
        }
        raw += n + (raw[n] == '&');
    }
    return NULL;
}

const char *target_parse(const char *raw, struct arena *a, struct target *out)
{
    *out = (struct target){ 0 };
    if (raw[0] != '/')
        return "the target of a request begins with a slash";
    for (const char *c = raw; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || *c == '#')
            return "the target has a character that must be escaped";
    size_t path = strcspn(raw, "?");
    const char *why = parse_path(raw, path, a, out);
    if (why)
        return why;
    return raw[path] ? parse_query(raw + path + 1, a, out) : NULL;
}

const char *target_value(const struct target *t, const char *name)
{
    for (size_t i = 0; i < t->n_pairs; i++)
        if (!strcmp(t->pair[i].name, name))
            return t->pair[i].value;
    return NULL;
}
