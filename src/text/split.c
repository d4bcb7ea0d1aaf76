/* SPDX-License-Identifier: Apache-2.0 */
#include "text/split.h"

#include "base/cleanup.h"
#include "text/unicode.h"
#include <string.h>

#define TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define HEAD "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define GPT2 "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static const struct {
    const char *pattern;
    enum split_kind kind;
} patterns[] = {
    { "'s|'t|'re|'ve|'m|'ll|'d" GPT2, SPLIT_GPT2 },
    { "'(?:[sdmt]|ll|ve|re)" GPT2, SPLIT_GPT2 },
    { HEAD "|\\p{N}{1,3}" TAIL, SPLIT_CL100K },
    { HEAD "|\\p{N}" TAIL, SPLIT_QWEN2 },
};

bool split_find(const char *pattern, enum split_kind *out)
{
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
        if (!strcmp(pattern, patterns[i].pattern)) {
            *out = patterns[i].kind;
            return true;
        }
    return false;
}

/* Most text is ASCII. */
static const unsigned char ascii[128] = {
    ['a' ... 'z'] = UNICODE_LETTER,  ['A' ... 'Z'] = UNICODE_LETTER, ['0' ... '9'] = UNICODE_NUMBER,
    ['\t' ... '\r'] = UNICODE_SPACE, [' '] = UNICODE_SPACE,
};

/* The class of the character at s, and its size; the end of the text is a space of no size. */
static enum unicode_class class_at(const char *s, size_t n, size_t *size)
{
    *size = n > 0;
    if (!n)
        return UNICODE_SPACE;
    if ((unsigned char)s[0] < 0x80)
        return ascii[(unsigned char)s[0]];
    uint32_t c;
    *size = unicode_next(s, n, &c);
    return unicode_class_of(c);
}

/* How many bytes of this class follow from `at` on, at most `most` characters. */
static size_t run(const char *s, size_t n, size_t at, enum unicode_class class, size_t most)
{
    size_t begin = at, size;
    for (; most && at < n; most--) {
        unsigned char b = (unsigned char)s[at];
        if (b < 0x80 ? ascii[b] != class : class_at(s + at, n - at, &size) != class)
            break;
        at += b < 0x80 ? 1 : size;
    }
    return at - begin;
}

/* The length of 's, 't, 're …; 0 if there is none.  A long s counts as an s where case does not matter. */
static size_t contraction(const char *s, size_t n, bool any_case)
{
    if (n < 2 || s[0] != '\'')
        return 0;
    if (any_case && n > 2 && !memcmp(s + 1, "\xc5\xbf", 2))
        return 3;
    char a = s[1], b = n > 2 ? s[2] : '\0';
    if (any_case && a >= 'A' && a <= 'Z')
        a = (char)(a | 0x20);
    if (any_case && b >= 'A' && b <= 'Z')
        b = (char)(b | 0x20);
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 2;
    return (a == 'l' && b == 'l') || ((a == 'r' || a == 'v') && b == 'e') ? 3 : 0;
}

/* \s+(?!\S)|\s+ : all white space at the end of the text; before a word all but the last character. */
static size_t spaces(const char *s, size_t n)
{
    size_t at = 0, last = 0, size;
    while (at < n && class_at(s + at, n - at, &size) == UNICODE_SPACE) {
        last = at;
        at += size;
    }
    return at < n && last ? last : at;
}

static size_t gpt2_next(const char *s, size_t n)
{
    size_t size, begin = contraction(s, n, false);
    if (begin)
        return begin;
    begin = s[0] == ' ';
    enum unicode_class class = class_at(s + begin, n - begin, &size);
    if (class == UNICODE_SPACE)
        return spaces(s, n);
    return begin + size + run(s, n, begin + size, class, n);
}

static bool is_line_end(char c)
{
    return c == '\r' || c == '\n';
}

/* \s*[\r\n]+ : up to the last line end of the white space; 0 if there is none in it. */
static size_t line_ends(const char *s, size_t n)
{
    size_t all = run(s, n, 0, UNICODE_SPACE, n);
    while (all && !is_line_end(s[all - 1]))
        all--;
    return all;
}

static size_t cl100k_next(const char *s, size_t n, size_t digits)
{
    size_t size, next, begin = contraction(s, n, true);
    if (begin)
        return begin;
    enum unicode_class class = class_at(s, n, &size);
    if (class == UNICODE_LETTER)
        return size + run(s, n, size, class, n);
    if (class == UNICODE_NUMBER)
        return run(s, n, 0, class, digits);
    enum unicode_class second = class_at(s + size, n - size, &next);
    if (second == UNICODE_LETTER && !is_line_end(s[0]))
        return size + run(s, n, size, UNICODE_LETTER, n);
    begin = s[0] == ' ';
    if (class == UNICODE_OTHER || (begin && second == UNICODE_OTHER)) {
        size_t end = begin + run(s, n, begin, UNICODE_OTHER, n);
        while (end < n && is_line_end(s[end]))
            end++;
        return end;
    }
    size_t lines = line_ends(s, n);
    return lines ? lines : spaces(s, n);
}

static size_t digits_next(const char *s, size_t n)
{
    size_t at = 0, size = 0;
    while (at < n && class_at(s + at, n - at, &size) != UNICODE_NUMBER)
        at += size;
    return at ? at : size;
}

size_t split_next(enum split_kind kind, const char *s, size_t n)
{
    switch (kind) {
    case SPLIT_GPT2:
        return gpt2_next(s, n);
    case SPLIT_CL100K:
        return cl100k_next(s, n, 3);
    case SPLIT_QWEN2:
        return cl100k_next(s, n, 1);
    default:
        return digits_next(s, n);
    }
}

static bool is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether a non-space character starts at s[at]; on the left, whether one ends there. */
static bool is_solid(const char *s, size_t n)
{
    size_t size;
    return class_at(s, n, &size) != UNICODE_SPACE;
}

static bool is_solid_before(const char *s, size_t at)
{
    size_t begin = at - 1;
    while (begin && at - begin < 4 && ((unsigned char)s[begin] & 0xc0) == 0x80)
        begin--;
    return is_solid(s + begin, at - begin);
}

/* Before a space between two letters, and between lines of which neither is empty nor has white space there. */
static bool may_cut(const char *s, size_t n, size_t at)
{
    if (at < 1 || at + 1 >= n)
        return false;
    if (s[at] == ' ')
        return is_ascii_letter(s[at - 1]) && is_ascii_letter(s[at + 1]);
    return s[at - 1] == '\n' && at > 1 && is_solid(s + at, n - at) && is_solid_before(s, at - 1);
}

size_t split_cut(const char *s, size_t n)
{
    for (size_t at = n; at-- > 1;)
        if ((s[at] == ' ' || s[at - 1] == '\n') && may_cut(s, n, at))
            return at;
    return 0;
}
