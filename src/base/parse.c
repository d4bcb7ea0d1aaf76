/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include "base/str.h"
#include <string.h>

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

static bool parse_digits(const char *s, size_t n, unsigned base, uint64_t *out)
{
    uint64_t v = 0;
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned d = (unsigned)digit_value(s[i]);
        if (d >= base || v > (UINT64_MAX - d) / base)
            return false;
        v = v * base + d;
    }
    *out = v;
    return true;
}

bool cairn_parse_u64(const char *text, uint64_t *out)
{
    return parse_digits(text, strlen(text), 10, out);
}

bool cairn_parse_i64(const char *text, int64_t *out)
{
    bool minus = *text == '-';
    uint64_t v;
    if (!cairn_parse_u64(text + minus, &v) || v > INT64_MAX)
        return false;
    *out = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

bool cairn_parse_hex(const char *text, uint64_t *out)
{
    if (str_starts(text, "0x") || str_starts(text, "0X"))
        text += 2;
    return parse_digits(text, strlen(text), 16, out);
}

bool cairn_parse_pair(const char *line, char *name, size_t size, uint64_t *out)
{
    size_t len = strcspn(line, "\r\n"), key = strcspn(line, " ");
    uint64_t v;
    if (key == 0 || key >= size || key + 1 >= len || !parse_digits(line + key + 1, len - key - 1, 10, &v))
        return false;
    memcpy(name, line, key);
    name[key] = '\0';
    *out = v;
    return true;
}

/* Suffixes of pre-releases: 6.18.0-rc6, 2.12.0a0, 2.14.0.dev20260901, 0.50.0b1. */
static bool is_pre_release(const char *tail)
{
    static const char *const marks[] = { "-rc", "rc", "a", "b", ".dev", "dev", "-alpha", "-beta" };
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (str_starts(tail, marks[i]))
            return true;
    return false;
}

bool version_parse(const char *text, struct version *out)
{
    struct version v = { 0 };
    const char *p = text + (*text == 'v');
    for (;;) {
        size_t n = strspn(p, "0123456789");
        uint64_t part;
        if (n > 9 || !parse_digits(p, n, 10, &part))
            return false;
        v.part[v.n++] = (int)part;
        p += n;
        if (v.n == 3 || *p != '.' || digit_value(p[1]) > 9)
            break;
        p++;
    }
    v.pre = is_pre_release(p);
    *out = v;
    return true;
}

int version_compare(struct version a, struct version b)
{
    if (!a.n || !b.n)
        return (a.n != 0) - (b.n != 0);
    for (int i = 0; i < 3; i++)
        if (a.part[i] != b.part[i])
            return a.part[i] < b.part[i] ? -1 : 1;
    return (int)b.pre - (int)a.pre;
}

bool version_at_least(struct version v, int major, int minor, int patch)
{
    return v.n && version_compare(v, (struct version){ 3, { major, minor, patch }, false }) >= 0;
}

bool version_below(struct version v, int major, int minor, int patch)
{
    return v.n && !version_at_least(v, major, minor, patch);
}
