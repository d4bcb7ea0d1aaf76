/* SPDX-License-Identifier: Apache-2.0 */
#include "text/grapheme.h"

#include "base/cleanup.h"
#include "text/grapheme_table.h"
#include "text/unicode.h"

static enum grapheme_class class_of(uint32_t c)
{
    if (c >= 0xac00 && c <= 0xd7a3)
        return (c - 0xac00) % 28 ? GRAPHEME_LVT : GRAPHEME_LV;
    size_t low = 0, high = ARRAY_LEN(graphemes);
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (graphemes[mid].last < c)
            low = mid + 1;
        else
            high = mid;
    }
    return low < ARRAY_LEN(graphemes) && graphemes[low].first <= c ? graphemes[low].class : GRAPHEME_OTHER;
}

bool grapheme_is_word(uint32_t c)
{
    size_t low = 0, high = ARRAY_LEN(words);
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (words[mid].last < c)
            low = mid + 1;
        else
            high = mid;
    }
    return low < ARRAY_LEN(words) && words[low].first <= c;
}

/* What the rules need to know about the characters before. */
struct before {
    uint32_t c;
    enum grapheme_class class;
    bool picture;   /* a picture, then only extending characters */
    bool consonant; /* a consonant, then only extending characters, */
    bool linked;    /* one of which links it to the next */
    size_t flags;   /* regional indicators in a row */
};

static bool hangul_joins(enum grapheme_class a, enum grapheme_class b)
{
    if (a == GRAPHEME_L)
        return b == GRAPHEME_L || b == GRAPHEME_V || b == GRAPHEME_LV || b == GRAPHEME_LVT;
    if (a == GRAPHEME_LV || a == GRAPHEME_V)
        return b == GRAPHEME_V || b == GRAPHEME_T;
    return (a == GRAPHEME_LVT || a == GRAPHEME_T) && b == GRAPHEME_T;
}

/* Whether there is no boundary before a character: the rules GB3 to GB13. */
static bool joins(const struct before *b, uint32_t c, enum grapheme_class class)
{
    if (b->c == '\r' && c == '\n')
        return true;
    if (b->class == GRAPHEME_CONTROL || class == GRAPHEME_CONTROL)
        return false;
    if (hangul_joins(b->class, class))
        return true;
    if (class == GRAPHEME_EXTEND || class == GRAPHEME_LINKER || class == GRAPHEME_SPACING ||
        b->class == GRAPHEME_PREPEND)
        return true;
    if (class == GRAPHEME_CONSONANT && b->consonant && b->linked)
        return true;
    if (class == GRAPHEME_PICTURE && b->picture && b->c == 0x200d)
        return true;
    return class == GRAPHEME_FLAG && b->flags % 2;
}

static void pass(struct before *b, uint32_t c, enum grapheme_class class)
{
    bool extends = class == GRAPHEME_EXTEND || class == GRAPHEME_LINKER;
    b->picture = class == GRAPHEME_PICTURE || (b->picture && extends);
    b->consonant = class == GRAPHEME_CONSONANT || (b->consonant && extends && c != 0x200c);
    b->linked = b->consonant && class != GRAPHEME_CONSONANT && (b->linked || class == GRAPHEME_LINKER);
    b->flags = class == GRAPHEME_FLAG ? b->flags + 1 : 0;
    b->c = c;
    b->class = class;
}

size_t grapheme_next(const char *s, size_t n)
{
    struct before b = { 0 };
    uint32_t c;
    size_t at = unicode_next(s, n, &c);
    pass(&b, c, class_of(c));
    while (at < n) {
        size_t size = unicode_next(s + at, n - at, &c);
        enum grapheme_class class = class_of(c);
        if (!joins(&b, c, class))
            break;
        pass(&b, c, class);
        at += size;
    }
    return at;
}
