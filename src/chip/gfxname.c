/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/gfxname.h"

#include "base/str.h"
#include <stdio.h>
#include <string.h>

static const char stem[] = "gfx";
enum { STEM = sizeof(stem) - 1, SHORTEST = 3, LONGEST = 5 };

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t hex_run(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && is_hex(s[i]))
        i++;
    return i;
}

/* "gfx9-4-generic": numbers between hyphens, then the word. */
static size_t span_generic(const char *s, size_t n)
{
    static const char word[] = "generic";
    size_t i = STEM;
    for (;;) {
        size_t start = i;
        while (i < n && is_digit(s[i]))
            i++;
        if (i == start || i - start > 2 || i == n || s[i] != '-')
            return 0;
        i++;
        if (n - i >= sizeof(word) - 1 && !memcmp(s + i, word, sizeof(word) - 1))
            return i + sizeof(word) - 1;
    }
}

size_t gfxname_span(const char *s, size_t n)
{
    if (n <= STEM || memcmp(s, stem, STEM) != 0)
        return 0;
    size_t len = span_generic(s, n);
    if (!len) {
        size_t digits = hex_run(s + STEM, n - STEM);
        if (digits < SHORTEST || digits > LONGEST || !is_digit(s[STEM]))
            return 0;
        len = STEM + digits;
    }
    return len < n && is_word(s[len]) ? 0 : len;
}

const char *gfxname_find(const char *s, size_t n, size_t *len)
{
    const char *end = s + n;
    for (const char *p = s; (p = memmem(p, (size_t)(end - p), stem, STEM)) != NULL; p += STEM) {
        *len = p > s && is_word(p[-1]) ? 0 : gfxname_span(p, (size_t)(end - p));
        if (*len)
            return p;
    }
    return NULL;
}

size_t gfxname_span_glued(const char *s, size_t n)
{
    if (n < STEM + SHORTEST || memcmp(s, stem, STEM) != 0 || !is_digit(s[STEM]))
        return 0;
    /* Majors 10 and up have two digits, and nothing older than gfx6 is of interest here. */
    size_t want = s[STEM] == '1' ? SHORTEST + 1 : SHORTEST;
    return hex_run(s + STEM, n - STEM) >= want ? STEM + want : 0;
}

bool gfxname_from_kfd(uint64_t v, char name[GFXNAME_MAX])
{
    uint64_t major = v / 10000, minor = v / 100 % 100, stepping = v % 100;
    /* Each of minor and stepping is one hex digit in the name; anything else is not a target. */
    if (major < 6 || major > 99 || minor > 15 || stepping > 15)
        return false;
    snprintf(name, GFXNAME_MAX, "gfx%u%x%x", (unsigned)major, (unsigned)minor, (unsigned)stepping);
    return true;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

bool gfxname_split(const char *name, int *major, int *minor, int *stepping)
{
    if (!str_starts(name, "gfx"))
        return false;
    const char *p = name + 3;
    size_t n = strlen(p);
    if (n < 3 || n > 4)
        return false;
    int m = 0;
    for (size_t i = 0; i < n - 2; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        m = m * 10 + (p[i] - '0');
    }
    int lo = hex_digit(p[n - 2]), step = hex_digit(p[n - 1]);
    if (m < 6 || lo < 0 || step < 0)
        return false;
    *major = m;
    *minor = lo;
    *stepping = step;
    return true;
}
