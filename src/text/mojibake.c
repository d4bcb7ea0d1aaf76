/* SPDX-License-Identifier: Apache-2.0 */
#include "text/mojibake.h"

#include "base/cleanup.h"
#include "text/mojibake_table.h"
#include "text/runes.h"
#include "text/unicode.h"
#include <string.h>

/* Classes beside those of the table. */
enum {
    AZ_LOWER = 1 << CHAR_CLASSES,
    AZ_UPPER = 2 << CHAR_CLASSES,
    SPACE = 4 << CHAR_CLASSES,
    WORD = 8 << CHAR_CLASSES,
    NOT_AZ = 16 << CHAR_CLASSES,
    NOT_NEWLINE = 32 << CHAR_CLASSES,
};

enum {
    COMMON = MOJIBAKE_COMMON,
    C1 = MOJIBAKE_C1,
    BAD = MOJIBAKE_BAD,
    LAW = MOJIBAKE_LAW,
    CURRENCY = MOJIBAKE_CURRENCY,
    OPENING = MOJIBAKE_START_PUNCTUATION,
    CLOSING = MOJIBAKE_END_PUNCTUATION,
    NUMERIC = MOJIBAKE_NUMERIC,
    KAOMOJI = MOJIBAKE_KAOMOJI,
    UPPER = MOJIBAKE_UPPER_ACCENTED,
    LOWER = MOJIBAKE_LOWER_ACCENTED,
    UPPER_COMMON = MOJIBAKE_UPPER_COMMON,
    LOWER_COMMON = MOJIBAKE_LOWER_COMMON,
    BOX = MOJIBAKE_BOX,
    AZ = AZ_LOWER | AZ_UPPER,
    ACCENTED = LOWER | UPPER,
    SIGNS = ACCENTED | BOX | OPENING | CLOSING | CURRENCY | NUMERIC | LAW,
    ARABIC_SECOND = COMMON | CURRENCY | BAD | NUMERIC | OPENING,
};

#define ARABIC_SECOND_ALSO "ŸŠ®°µ»"
enum { STEPS = 7 };

/* A sequence of characters that betrays mojibake.  Each is of one of the classes, or one of those listed in
 * utf8; a step without either ends the rule. */
struct rule {
    struct step {
        uint32_t classes;
        const char *utf8;
    } steps[STEPS];
    bool at_start; /* only at the start of the text */
};

#define OF(classes)            \
    {                          \
        (uint32_t)(classes), 0 \
    }
#define ONE_OF(utf8) \
    {                \
        0, utf8      \
    }
#define OF_OR(classes, utf8)      \
    {                             \
        (uint32_t)(classes), utf8 \
    }
#define RULE(...)              \
    {                          \
        { __VA_ARGS__ }, false \
    }

static const struct rule rules[] = {
    RULE(OF(C1)),
    RULE(OF(BAD | SIGNS), OF(BAD)),
    RULE(OF(BAD), OF(SIGNS)),
    RULE(OF(AZ), OF(LOWER_COMMON | UPPER_COMMON), OF(BAD)),
    RULE(OF(LOWER | LOWER_COMMON | BOX | CLOSING | CURRENCY | NUMERIC), OF(UPPER)),
    RULE(OF(BOX | CLOSING | CURRENCY | NUMERIC), OF(LOWER)),
    RULE(OF(LOWER | BOX | CLOSING), OF(CURRENCY)),
    RULE(OF(SPACE), OF(UPPER), OF(CURRENCY)),
    RULE(OF(UPPER | BOX), OF(NUMERIC | LAW)),
    RULE(OF(ACCENTED | BOX | CURRENCY | CLOSING), OF(OPENING), OF(NUMERIC)),
    RULE(OF(ACCENTED | CURRENCY | NUMERIC | BOX | LAW), OF(CLOSING), OF(OPENING)),
    RULE(OF(CURRENCY | NUMERIC | BOX), OF(OPENING)),
    RULE(OF(AZ_LOWER), OF(UPPER), OF(OPENING | CURRENCY)),
    RULE(OF(BOX), OF(KAOMOJI | CLOSING)),
    RULE(OF(ACCENTED | CURRENCY | NUMERIC | OPENING | CLOSING | LAW), OF(BOX)),
    RULE(OF(ACCENTED), OF(OPENING | CLOSING), OF(WORD)),
    RULE(ONE_OF("Œœ"), OF(NOT_AZ)),
    RULE(OF(UPPER), ONE_OF("°")),
    /* Two characters that were one of Latin, Greek or Cyrillic, decoded as Windows-1252. */
    RULE(ONE_OF("ÂÃÎÐ"), OF_OR(OPENING | CLOSING, "€œŠš¢£Ÿž\u00a0\u00ad®©°·»–—´")),
    RULE(ONE_OF("×"), ONE_OF("²³")),
    /* Two letters of Arabic. */
    RULE(ONE_OF("ØÙ"), OF_OR(ARABIC_SECOND, ARABIC_SECOND_ALSO), ONE_OF("ØÙ"),
         OF_OR(ARABIC_SECOND, ARABIC_SECOND_ALSO)),
    /* South Asian letters. */
    RULE(ONE_OF("à"), ONE_OF("²µ¹¼½¾")),
    /* MacRoman. */
    RULE(ONE_OF("√"), ONE_OF("±∂†≠®™´≤≥¥µø")),
    RULE(ONE_OF("≈"), ONE_OF("°¢")),
    RULE(ONE_OF("‚"), ONE_OF("Ä"), ONE_OF("ìîïòôúùû†°¢π")),
    RULE(ONE_OF("‚"), ONE_OF("âó"), ONE_OF("àä°ê")),
    /* Windows-1251: punctuation, Latin and Cyrillic letters, and Windows-1252 within it. */
    RULE(ONE_OF("в"), ONE_OF("Ђ")),
    RULE(ONE_OF("ВГРС"), OF_OR(C1 | BAD | OPENING | CLOSING | CURRENCY, "°µ"), ONE_OF("ВГРС")),
    RULE(ONE_OF("Г"), ONE_OF("ў"), ONE_OF("В"), ONE_OF("Ђ"), ONE_OF("В"), OF(NOT_NEWLINE), OF_OR(AZ, " ")),
    /* Windows-1252, where the second byte became a space. */
    RULE(OF(AZ_LOWER), ONE_OF("ÃÂ"), ONE_OF(" ")),
    RULE(OF(AZ_LOWER), OF(SPACE), ONE_OF("ÃÂ"), ONE_OF(" ")),
    { { ONE_OF("ÃÂ"), ONE_OF(" ") }, true },
    RULE(OF_OR(CLOSING, ".,?!"), ONE_OF("Â"), ONE_OF(" ")),
    /* Windows-1253. */
    RULE(ONE_OF("β"), ONE_OF("€"), ONE_OF("™\u00a0Ά\u00ad®°")),
    RULE(ONE_OF("ΒΓΞΟ"), OF_OR(C1 | BAD | OPENING | CLOSING | CURRENCY, "°"), ONE_OF("ΒΓΞΟ")),
};

static uint32_t table_classes(uint32_t c)
{
    size_t low = 0, high = ARRAY_LEN(char_classes);
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (char_classes[mid].last < c)
            low = mid + 1;
        else
            high = mid;
    }
    return low < ARRAY_LEN(char_classes) && char_classes[low].first <= c ? char_classes[low].classes : 0;
}

static uint32_t classes_of(uint32_t c)
{
    uint32_t classes = table_classes(c) | (c == '\n' ? 0 : NOT_NEWLINE);
    enum unicode_class kind = unicode_class_of(c);
    if (kind == UNICODE_LETTER && c < 0x80)
        classes |= c >= 'a' ? AZ_LOWER : AZ_UPPER;
    else
        classes |= NOT_AZ;
    if (kind == UNICODE_LETTER || kind == UNICODE_NUMBER || c == '_')
        classes |= WORD;
    return classes | (rune_is_space(c) ? SPACE : 0);
}

static bool listed(const char *list, uint32_t c)
{
    uint32_t one;
    for (size_t n = list ? strlen(list) : 0; n;) {
        size_t size = unicode_next(list, n, &one);
        if (one == c)
            return true;
        list += size;
        n -= size;
    }
    return false;
}

/* The classes of characters i to i + STEPS - 1, each at its index modulo WINDOW. */
enum { WINDOW = 8 };

static bool matches(const struct rule *r, const uint32_t *at, size_t n, size_t i, const uint32_t *classes)
{
    for (size_t k = 0; k < STEPS && (r->steps[k].classes || r->steps[k].utf8); k++)
        if (i + k >= n ||
            (!(r->steps[k].classes & classes[(i + k) % WINDOW]) && !listed(r->steps[k].utf8, at[i + k])))
            return false;
    return true;
}

bool mojibake_found(const uint32_t *at, size_t n)
{
    uint32_t classes[WINDOW] = { 0 };
    size_t known = 0; /* the first character whose classes are not computed */
    for (size_t i = 0; i < n; i++) {
        /* Every rule has something beyond ASCII in its first three characters. */
        if (at[i] < 0x80 && (n - i < 2 || at[i + 1] < 0x80) && (n - i < 3 || at[i + 2] < 0x80))
            continue;
        for (known = known > i ? known : i; known < n && known < i + STEPS; known++)
            classes[known % WINDOW] = classes_of(at[known]);
        for (size_t k = 0; k < ARRAY_LEN(rules); k++)
            if ((!rules[k].at_start || !i) && matches(&rules[k], at, n, i, classes))
                return true;
    }
    return false;
}

size_t mojibake_run(const uint32_t *at, size_t n, size_t from)
{
    if (from && table_classes(at[from - 1]) & UTF8_CONTINUATION_STRICT)
        return 0;
    size_t end = from;
    while (end < n) {
        uint32_t first = table_classes(at[end]);
        size_t size = first & UTF8_FIRST_OF_2   ? 2
                      : first & UTF8_FIRST_OF_3 ? 3
                      : first & UTF8_FIRST_OF_4 ? 4
                                                : 0;
        size_t k = 1;
        while (k < size && end + k < n && table_classes(at[end + k]) & UTF8_CONTINUATION)
            k++;
        if (!size || k < size)
            break;
        end += size;
    }
    return end - from;
}
