/* SPDX-License-Identifier: Apache-2.0 */
#include "text/unicode.h"

#include "base/cleanup.h"
#include "text/unicode_table.h"

static bool follows(const char *s, size_t i)
{
    return ((unsigned char)s[i] & 0xc0) == 0x80;
}

static uint32_t bits(const char *s, size_t i)
{
    return (unsigned char)s[i] & 0x3f;
}

size_t unicode_next(const char *s, size_t n, uint32_t *c)
{
    unsigned char b = (unsigned char)s[0];
    *c = b;
    if (b < 0x80)
        return 1;
    *c = UNICODE_BAD;
    if (b >= 0xc2 && b < 0xe0 && n > 1 && follows(s, 1)) {
        *c = (uint32_t)(b & 0x1f) << 6 | bits(s, 1);
        return 2;
    }
    if (b >= 0xe0 && b < 0xf0 && n > 2 && follows(s, 1) && follows(s, 2)) {
        uint32_t v = (uint32_t)(b & 0x0f) << 12 | bits(s, 1) << 6 | bits(s, 2);
        bool whole = v >= 0x800 && (v < 0xd800 || v > 0xdfff);
        *c = whole ? v : UNICODE_BAD;
        return whole ? 3 : 1;
    }
    if (b >= 0xf0 && b < 0xf5 && n > 3 && follows(s, 1) && follows(s, 2) && follows(s, 3)) {
        uint32_t v = (uint32_t)(b & 0x07) << 18 | bits(s, 1) << 12 | bits(s, 2) << 6 | bits(s, 3);
        bool whole = v >= 0x10000 && v <= 0x10ffff;
        *c = whole ? v : UNICODE_BAD;
        return whole ? 4 : 1;
    }
    return 1;
}

size_t unicode_put(char *s, uint32_t c)
{
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        s[i] = (char)(0x80 | (c & 0x3f));
    s[0] = (char)(lead[n] | c);
    return n;
}

static bool holds(const struct unicode_range *r, size_t n, uint32_t c)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (r[mid].last < c)
            low = mid + 1;
        else
            high = mid;
    }
    return low < n && r[low].first <= c;
}

/* White_Space, which is what \s means. */
static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
           c == 0x3000;
}

enum unicode_class unicode_class_of(uint32_t c)
{
    if (c < 0x80) {
        if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
            return UNICODE_LETTER;
        if (c >= '0' && c <= '9')
            return UNICODE_NUMBER;
        return is_space(c) ? UNICODE_SPACE : UNICODE_OTHER;
    }
    if (holds(letters, ARRAY_LEN(letters), c))
        return UNICODE_LETTER;
    if (holds(numbers, ARRAY_LEN(numbers), c))
        return UNICODE_NUMBER;
    return is_space(c) ? UNICODE_SPACE : UNICODE_OTHER;
}

size_t unicode_nfc_span(const char *s, size_t n)
{
    uint32_t c;
    for (size_t at = 0; at < n;) {
        size_t size = unicode_next(s + at, n - at, &c);
        /* Nothing below U+0300 changes. */
        if (c >= 0x300 && c != UNICODE_BAD && holds(unstable, ARRAY_LEN(unstable), c))
            return at;
        at += size;
    }
    return n;
}
