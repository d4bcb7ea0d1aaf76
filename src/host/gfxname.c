/* SPDX-License-Identifier: Apache-2.0 */
#include "host/gfxname.h"

#include <stdbool.h>
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
