/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void str_reserve(struct str *t, size_t more)
{
    if (t->cap - t->len > more)
        return;
    size_t cap = t->cap ? t->cap : 64;
    while (cap - t->len <= more) {
        if (cap > SIZE_MAX / 2)
            abort();
        cap *= 2;
    }
    char *s = realloc(t->s, cap);
    if (!s) {
        fprintf(stderr, "cairn: out of memory (%zu bytes)\n", cap);
        abort();
    }
    t->s = s;
    t->cap = cap;
}

void str_addn(struct str *t, const char *s, size_t n)
{
    str_reserve(t, n);
    if (n)
        memcpy(t->s + t->len, s, n);
    t->len += n;
    t->s[t->len] = '\0';
}

void str_add(struct str *t, const char *s)
{
    str_addn(t, s, strlen(s));
}

void str_addf(struct str *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n > 0) {
        str_reserve(t, (size_t)n);
        vsnprintf(t->s + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

void str_add_clean(struct str *t, const char *s, size_t n)
{
    str_addn(t, "", 0);
    for (size_t at = 0; at < n; at++) {
        size_t clean = str_clean_span(s + at, n - at);
        str_addn(t, s + at, clean);
        at += clean;
        if (at < n)
            str_addn(t, "?", 1);
    }
}

void str_add_clean_lines(struct str *t, const char *s, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t end = at;
        while (end < n && s[end] != '\n' && s[end] != '\t')
            end++;
        str_add_clean(t, s + at, end - at);
        if (end < n)
            str_addn(t, s + end, 1);
        at = end + 1;
    }
}

static size_t count_columns(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)s[i] & 0xc0) != 0x80;
    return columns;
}

void str_add_cell(struct str *t, const char *text, int width)
{
    size_t n = 0;
    int shown = 0;
    for (; text[n] && (shown < width || ((unsigned char)text[n] & 0xc0) == 0x80); n++)
        shown += ((unsigned char)text[n] & 0xc0) != 0x80;
    str_add_clean(t, text, n);
    str_addf(t, "%*s", width - shown, "");
}

void str_add_padded(struct str *t, const char *text, int width)
{
    int n = (int)count_columns(text, strlen(text));
    str_add_cell(t, text, n > width ? n : width);
}

void str_add_wrapped(struct str *t, const char *text, size_t column, size_t indent, size_t width)
{
    for (bool first = true; *text; first = false) {
        size_t spaces = strspn(text, " "), word = strcspn(text + spaces, " ");
        size_t needs = spaces + count_columns(text + spaces, word);
        if (!first && word && column + needs > width) {
            str_addf(t, "\n%*s", (int)indent, "");
            text += spaces;
            column = indent + needs - spaces;
            str_addn(t, text, word);
            text += word;
            continue;
        }
        str_addn(t, text, spaces + word);
        text += spaces + word;
        column += needs;
    }
}

void str_release(struct str *t)
{
    free(t->s);
    *t = (struct str){ 0 };
}

bool str_eq(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

bool str_starts(const char *s, const char *prefix)
{
    return !strncmp(s, prefix, strlen(prefix));
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && !strcmp(s + n - m, suffix);
}

bool str_list_has(const char *list, char sep, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, sep), p = p ? p + 1 : NULL)
        if (!strncmp(p, word, n) && (p[n] == sep || p[n] == '\0'))
            return true;
    return false;
}

const char *str_env(const char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; env && *env; env++)
        if (!strncmp(*env, name, n) && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

bool str_is_variable(const char *name, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    for (size_t i = 0; i < n; i++)
        if (!name[i] || !strchr(letters, name[i]))
            return false;
    return n && (name[0] < '0' || name[0] > '9');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int str_compare_natural(const char *a, const char *b)
{
    /* Skip the common prefix: in a folder of kernels it is most of the name. */
    size_t same = 0;
    while (a[same] && a[same] == b[same])
        same++;
    while (same && is_digit(a[same - 1]))
        same--;
    a += same;
    b += same;
    while (*a && *b) {
        if (is_digit(*a) && is_digit(*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
            int order = na != nb ? (na < nb ? -1 : 1) : strncmp(a, b, na);
            if (order)
                return order;
            a += na;
            b += nb;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++, b++;
        }
    }
    return (*a != '\0') - (*b != '\0');
}

/* Length of the UTF-8 character at s, or 0 if it is not a valid one (overlong, surrogate, out of range). */
static size_t utf8_char(const unsigned char *s, size_t len)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } form[] = {
        { 0x80, 0x00, 0 },
        { 0xe0, 0xc0, 0x80 },
        { 0xf0, 0xe0, 0x800 },
        { 0xf8, 0xf0, 0x10000 },
    };
    for (size_t n = 1; n <= ARRAY_LEN(form); n++) {
        if ((s[0] & form[n - 1].mask) != form[n - 1].lead)
            continue;
        if (n > len)
            return 0;
        uint32_t c = (uint32_t)(s[0] & (unsigned char)~form[n - 1].mask);
        for (size_t i = 1; i < n; i++) {
            if ((s[i] & 0xc0) != 0x80)
                return 0;
            c = c << 6 | (s[i] & 0x3f);
        }
        bool surrogate = c >= 0xd800 && c <= 0xdfff;
        return c < form[n - 1].least || surrogate || c > 0x10ffff ? 0 : n;
    }
    return 0;
}

size_t str_clean_span(const char *s, size_t len)
{
    size_t at = 0;
    while (at < len) {
        const unsigned char *p = (const unsigned char *)s + at;
        size_t n = utf8_char(p, len - at);
        /* U+0080 to U+009F are control characters too: U+009B starts an escape sequence. */
        if (!n || p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0))
            break;
        at += n;
    }
    return at;
}

bool str_is_utf8(const char *s)
{
    size_t len = strlen(s);
    for (size_t at = 0, n; at < len; at += n) {
        n = utf8_char((const unsigned char *)s + at, len - at);
        if (!n)
            return false;
    }
    return true;
}

const char *str_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *str_next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : NULL;
}

/* For a word with control characters or invalid UTF-8. */
static void add_escaped(struct str *text, const char *c)
{
    if (*c == '\'' || *c == '\\')
        str_addf(text, "\\%c", *c);
    else if (*c == '\n')
        str_add(text, "\\n");
    else if (*c >= ' ' && *c < 0x7f)
        str_addn(text, c, 1);
    else
        str_addf(text, "\\%03o", (unsigned char)*c);
}

void str_add_word(struct str *text, const char *word)
{
    if (*word &&
        !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_")]) {
        str_add(text, word);
        return;
    }
    bool plain = str_clean_span(word, strlen(word)) == strlen(word);
    str_add(text, plain ? "'" : "$'");
    for (; *word; word++)
        if (plain)
            str_addf(text, *word == '\'' ? "'\\''" : "%c", *word);
        else
            add_escaped(text, word);
    str_add(text, "'");
}

const char *bytes_text(int64_t bytes, char *buf)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    double v = (double)bytes;
    size_t unit = 0;
    while (v >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        v /= 1024;
        unit++;
    }
    snprintf(buf, 24, v < 100 && unit >= 3 ? "%.1f %s" : "%.0f %s", v, units[unit]);
    return buf;
}
