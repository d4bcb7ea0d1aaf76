/* SPDX-License-Identifier: Apache-2.0 */
#include "text/html_unescape.h"

#include "text/html_entity_table.h"
#include <string.h>

enum {
    NAME_MAX_BROWSER = 32, /* characters of a name that html.unescape looks at */
    NAME_MAX_STRICT = 24,
};

enum { NEEDS_SEMICOLON = 1, BARE = 2, CAPITALS = 3 };

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint32_t c)
{
    return c < 0x80 && (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static int hex_value(uint32_t c)
{
    if (is_digit(c))
        return (int)(c - '0');
    return is_letter(c) && (c | 0x20) <= 'f' ? (int)((c | 0x20) - 'a' + 10) : -1;
}

/* The entry of a name; NULL if it has none. */
static const char *find_name(const char *name, size_t n)
{
    if (!n || !is_letter((unsigned char)name[0]))
        return NULL;
    const char *at = entities + entity_starts[name[0] - 'A'];
    const char *end = entities + entity_starts[name[0] - 'A' + 1];
    for (; at < end; at += strlen(at) + 1)
        if (!strncmp(at, name, n) && at[n] > 0 && at[n] <= BARE)
            return at + n;
    return NULL;
}

static void add_value(struct runes *out, const char *entry)
{
    runes_add_utf8(out, entry + 1, strcspn(entry + 1, "\3"));
}

/* The characters of a numeric reference at &; 0 if it is none.  Numbers that are too large become 0x110000. */
static size_t scan_number(const uint32_t *at, size_t n, uint32_t *value)
{
    if (n < 3 || at[1] != '#')
        return 0;
    uint32_t base = (at[2] | 0x20) == 'x' ? 16 : 10;
    size_t begin = base == 16 ? 3 : 2, i = begin;
    *value = 0;
    for (int digit; i < n && (digit = hex_value(at[i])) >= 0 && (uint32_t)digit < base; i++) {
        *value = *value * base + (uint32_t)digit;
        if (*value > 0x110000)
            *value = 0x110000;
    }
    return i == begin ? 0 : i;
}

/* What a browser shows for numbers from 0x80 to 0x9f: the characters of Windows-1252. */
static const uint16_t c1_numbers[32] = {
    0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021, 0x2c6,  0x2030, 0x160,
    0x2039, 0x152,  0x8d,   0x17d,  0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178,
};

static void add_number(struct runes *out, uint32_t c)
{
    if (c >= 0x80 && c <= 0x9f)
        runes_add(out, c1_numbers[c - 0x80]);
    else if (!c || (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff)
        runes_add(out, RUNE_REPLACEMENT);
    else if (c == '\r')
        runes_add(out, c);
    else if (c < 9 || c == 0xb || (c >= 0xe && c < 0x20) || c == 0x7f || (c >= 0xfdd0 && c <= 0xfdef) ||
             (c & 0xfffe) == 0xfffe)
        return; /* characters that HTML forbids */
    else
        runes_add(out, c);
}

/* A named reference at &; returns the characters it takes, 0 if none is known. */
static size_t browser_name(const uint32_t *at, size_t n, struct runes *out)
{
    char name[NAME_MAX_BROWSER];
    size_t size = 0;
    while (size < NAME_MAX_BROWSER && 1 + size < n && at[1 + size] < 0x80 && at[1 + size] &&
           !strchr("\t\n\f <&#;", (int)at[1 + size])) {
        name[size] = (char)at[1 + size];
        size++;
    }
    bool closed = 1 + size < n && at[1 + size] == ';';
    const char *entry = closed ? find_name(name, size) : NULL;
    if (entry) {
        add_value(out, entry);
        return size + 2;
    }
    for (size = size < ENTITY_BARE_MAX ? size : ENTITY_BARE_MAX; size >= 2; size--)
        if ((entry = find_name(name, size)) && *entry == BARE) {
            add_value(out, entry);
            return size + 1;
        }
    return 0;
}

void html_unescape(const struct runes *in, struct runes *out)
{
    for (size_t i = 0; i < in->n;) {
        const uint32_t *at = in->at + i;
        size_t left = in->n - i, size = 0;
        uint32_t number;
        if (at[0] == '&' && (size = scan_number(at, left, &number)) > 0) {
            add_number(out, number);
            size += size < left && at[size] == ';';
        } else if (at[0] == '&') {
            size = browser_name(at, left, out);
        }
        if (!size) {
            for (size = 1; size < left && at[size] != '&';)
                size++;
            runes_addn(out, at, size);
        }
        i += size;
    }
}

/* A name in capitals that stands for the same in small letters: the entry's value for it. */
static bool capital_name(const char *name, size_t n, struct runes *out)
{
    char lower[NAME_MAX_STRICT];
    for (size_t i = 0; i < n; i++) {
        if (name[i] >= 'a' && name[i] <= 'z')
            return false;
        lower[i] = is_letter((unsigned char)name[i]) ? (char)(name[i] | 0x20) : name[i];
    }
    const char *entry = find_name(lower, n);
    const char *capitals = entry ? strchr(entry, CAPITALS) : NULL;
    if (!capitals)
        return false;
    if (capitals[1])
        runes_add_utf8(out, capitals + 1, strlen(capitals + 1));
    else
        add_value(out, entry);
    return true;
}

/* A reference at &, with its semicolon; returns the characters it takes, 0 if none is known. */
static size_t strict_reference(const uint32_t *at, size_t n, struct runes *out)
{
    char name[NAME_MAX_STRICT];
    size_t begin = n > 1 && at[1] == '#' ? 2 : 1, size = 0;
    while (size < NAME_MAX_STRICT && begin + size < n &&
           (is_digit(at[begin + size]) || is_letter(at[begin + size]))) {
        name[size] = (char)at[begin + size];
        size++;
    }
    if (!size || begin + size >= n || at[begin + size] != ';')
        return 0;
    if (begin == 2) {
        uint32_t number;
        if (scan_number(at, n, &number) != begin + size || number == ';')
            return 0;
        add_number(out, number);
        return begin + size + 1;
    }
    const char *entry = find_name(name, size);
    if (entry)
        add_value(out, entry);
    return entry || capital_name(name, size, out) ? size + 2 : 0;
}

void html_unescape_strict(const struct runes *in, struct runes *out)
{
    for (size_t i = 0; i < in->n;) {
        size_t size = in->at[i] == '&' ? strict_reference(in->at + i, in->n - i, out) : 0;
        if (!size) {
            for (size = 1; i + size < in->n && in->at[i + size] != '&';)
                size++;
            runes_addn(out, in->at + i, size);
        }
        i += size;
    }
}

/* How many references to "&" are nested at &, at most `most`; *used: their characters behind the &. */
static size_t nested_ampersands(const uint32_t *at, size_t n, size_t most, size_t *used, struct runes *value)
{
    size_t count = 0;
    for (*used = 0; count < most; count++) {
        value->n = 0;
        size_t size = strict_reference(at + *used, n - *used, value);
        if (!size || value->n != 1 || value->at[0] != '&')
            break;
        *used += size - 1;
    }
    return count;
}

bool html_unnest_strict(const struct runes *in, struct runes *out)
{
    CLEANUP(runes_release) struct runes value = { 0 };
    size_t passes = SIZE_MAX, used;
    for (size_t i = 0; i < in->n; i++) {
        if (in->at[i] != '&')
            continue;
        size_t nested = nested_ampersands(in->at + i, in->n - i, SIZE_MAX, &used, &value);
        if (!nested && strict_reference(in->at + i, in->n - i, &value))
            return false; /* a reference to something else */
        if (nested && nested < passes)
            passes = nested;
    }
    if (passes == SIZE_MAX)
        return false;
    for (size_t i = 0; i < in->n; i++) {
        runes_add(out, in->at[i]);
        if (in->at[i] == '&' && nested_ampersands(in->at + i, in->n - i, passes, &used, &value))
            i += used;
    }
    return true;
}
