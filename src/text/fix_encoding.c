/* SPDX-License-Identifier: Apache-2.0 */
#include "text/fix_encoding.h"

#include "text/encoding_table.h"
#include "text/mojibake.h"
#include "text/unicode.h"
#include <string.h>

/* Classes of bytes, for the sequences below. */
enum {
    SPACE = 1 << 0,
    SUB = 1 << 1, /* stands for a character that was lost */
    QUESTION = 1 << 2,
    CONT = 1 << 3,
    CONT_PLAIN = 1 << 4, /* but 0x85, which is often an ellipsis, and 0xa0 */
    LEAD_SPACED = 1 << 5,
    LEAD_C2_C3 = 1 << 6,
    LEAD_2 = 1 << 7,
    LEAD_E2_E3 = 1 << 8,
    LEAD_E0_E3 = 1 << 9,
    LEAD_3 = 1 << 10,
    LEAD_F0 = 1 << 11,
    LEAD_4 = 1 << 12,
    LEAD_ED = 1 << 13,
    HIGH_SURROGATE = 1 << 14,
    LOW_SURROGATE = 1 << 15,
    LOST = SUB | QUESTION,
    CONT_OR_SUB = CONT | SUB,
    CONT_OR_LOST = CONT | LOST,
};

static const struct {
    uint8_t first, last;
    uint16_t classes;
} byte_classes[] = {
    { ' ', ' ', SPACE },           { 0x1a, 0x1a, SUB },
    { '?', '?', QUESTION },        { 0x80, 0xbf, CONT },
    { 0x80, 0x84, CONT_PLAIN },    { 0x86, 0x9f, CONT_PLAIN },
    { 0xa1, 0xbf, CONT_PLAIN },    { 0xa0, 0xaf, HIGH_SURROGATE },
    { 0xb0, 0xbf, LOW_SURROGATE }, { 0xc2, 0xc3, LEAD_SPACED | LEAD_C2_C3 },
    { 0xc5, 0xc5, LEAD_SPACED },   { 0xce, 0xce, LEAD_SPACED },
    { 0xd0, 0xd0, LEAD_SPACED },   { 0xd9, 0xd9, LEAD_SPACED },
    { 0xc2, 0xdf, LEAD_2 },        { 0xe2, 0xe3, LEAD_E2_E3 },
    { 0xe0, 0xe3, LEAD_E0_E3 },    { 0xe0, 0xef, LEAD_3 },
    { 0xed, 0xed, LEAD_ED },       { 0xf0, 0xf0, LEAD_F0 },
    { 0xf0, 0xf4, LEAD_4 },
};

enum { SEQUENCE = 6 };

/* UTF-8 with a space where 0xa0 belongs, which is as common as a no-break space. */
static const uint16_t spaced_sequences[][SEQUENCE] = {
    { LEAD_SPACED, SPACE },         { LEAD_E2_E3, SPACE, CONT_PLAIN }, { LEAD_E0_E3, CONT_PLAIN, SPACE },
    { LEAD_F0, SPACE, CONT, CONT }, { LEAD_F0, CONT, SPACE, CONT },    { LEAD_F0, CONT, CONT, SPACE },
};

/* UTF-8, and surrogates in it, of which a byte was lost.  The first that matches counts. */
static const uint16_t lossy_sequences[][SEQUENCE] = {
    { LEAD_2, SUB },
    { LEAD_C2_C3, QUESTION },
    { LEAD_ED, HIGH_SURROGATE, LOST, LEAD_ED, LOW_SURROGATE, CONT_OR_LOST },
    { LEAD_ED, HIGH_SURROGATE, CONT_OR_LOST, LEAD_ED, LOW_SURROGATE, LOST },
    { LEAD_3, LOST, CONT_OR_SUB },
    { LEAD_3, CONT_OR_SUB, LOST },
    { LEAD_4, LOST, CONT_OR_SUB, CONT_OR_SUB },
    { LEAD_4, CONT_OR_SUB, LOST, CONT_OR_SUB },
    { LEAD_4, CONT_OR_SUB, CONT_OR_SUB, LOST },
    { SUB },
};

static uint16_t classes_of(unsigned char byte)
{
    uint16_t classes = 0;
    for (size_t i = 0; i < ARRAY_LEN(byte_classes); i++)
        if (byte >= byte_classes[i].first && byte <= byte_classes[i].last)
            classes |= byte_classes[i].classes;
    return classes;
}

/* The bytes of the first sequence that the text begins with; 0 if there is none. */
static size_t find_sequence(const uint16_t (*sequences)[SEQUENCE], size_t n_sequences, const char *s,
                            size_t n)
{
    /* All but the lone substitute begin beyond ASCII. */
    if ((unsigned char)s[0] < 0x80 && s[0] != 0x1a)
        return 0;
    for (size_t i = 0; i < n_sequences; i++) {
        size_t k = 0;
        while (k < SEQUENCE && sequences[i][k] && k < n && classes_of((unsigned char)s[k]) & sequences[i][k])
            k++;
        if (k == SEQUENCE || !sequences[i][k])
            return k;
    }
    return 0;
}

static bool encode(const struct encoding *e, const struct runes *text, struct str *out)
{
    for (size_t i = 0; i < text->n; i++) {
        uint32_t c = text->at[i];
        if (c < 0x80 && (c != 0x1a || !e->sloppy)) {
            str_addn(out, &(char){ (char)c }, 1);
            continue;
        }
        if (c == RUNE_REPLACEMENT && e->sloppy) {
            str_addn(out, "\x1a", 1);
            continue;
        }
        size_t low = 0, high = ARRAY_LEN(e->map);
        while (low < high) {
            size_t mid = (low + high) / 2;
            if (e->map[mid].c < c)
                low = mid + 1;
            else
                high = mid;
        }
        if (low == ARRAY_LEN(e->map) || e->map[low].c != c)
            return false;
        str_addn(out, &(char){ (char)e->map[low].byte }, 1);
    }
    return true;
}

/* Whether the space after 0xc3 ends the word "à": 0xa0 is put before it then, and not in its place.  Words that
 * go on ("às", "àquele") are few. */
static bool ends_word(const char *rest, size_t n)
{
    static const char *const others[] = { " ", "quele", "quela", "quilo", "s " };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (n >= strlen(others[i]) && !memcmp(rest, others[i], strlen(others[i])))
            return false;
    return true;
}

/* Puts 0xa0 back where a space stands for it. */
static void restore_a0(struct str *bytes)
{
    CLEANUP(str_release) struct str words = { 0 };
    CLEANUP(str_release) struct str out = { 0 };
    bool any = false;
    for (size_t i = 0; i < bytes->len && !any; i++)
        any = find_sequence(spaced_sequences, ARRAY_LEN(spaced_sequences), bytes->s + i, bytes->len - i);
    if (!any)
        return;
    for (size_t i = 0; i < bytes->len; i++) {
        str_addn(&words, bytes->s + i, 1);
        if (bytes->s[i] == '\xc3' && i + 1 < bytes->len && bytes->s[i + 1] == ' ' &&
            ends_word(bytes->s + i + 2, bytes->len - i - 2))
            str_addn(&words, "\xa0", 1);
    }
    for (size_t i = 0; i < words.len;) {
        size_t size =
            find_sequence(spaced_sequences, ARRAY_LEN(spaced_sequences), words.s + i, words.len - i);
        size_t end = i + (size ? size : 1);
        for (; i < end; i++)
            str_addn(&out, size && words.s[i] == ' ' ? "\xa0" : words.s + i, 1);
    }
    struct str old = *bytes;
    *bytes = out;
    out = old;
}

static void replace_lossy(struct str *bytes)
{
    CLEANUP(str_release) struct str out = { 0 };
    for (size_t i = 0; i < bytes->len;) {
        size_t size =
            find_sequence(lossy_sequences, ARRAY_LEN(lossy_sequences), bytes->s + i, bytes->len - i);
        if (size)
            str_add(&out, "\xef\xbf\xbd");
        else
            str_addn(&out, bytes->s + i, size = 1);
        i += size;
    }
    struct str old = *bytes;
    *bytes = out;
    out = old;
}

/* Java's zero, and a pair of surrogates of three bytes each (CESU-8).  ftfy takes a line feed at the end of the
 * text for their last byte. */
static size_t decode_variant(const unsigned char *s, size_t n, uint32_t *c)
{
    if (n >= 2 && s[0] == 0xc0 && (s[1] == 0x80 || (s[1] == '\n' && n == 2))) {
        *c = 0;
        return 2;
    }
    if (n < 6 || s[0] != 0xed || (s[1] & 0xf0) != 0xa0 || (s[2] & 0xc0) != 0x80 || s[3] != 0xed ||
        (s[4] & 0xf0) != 0xb0 || ((s[5] & 0xc0) != 0x80 && (s[5] != '\n' || n != 6)))
        return 0;
    *c = 0x10000 + ((uint32_t)(s[1] & 0x0f) << 16 | (uint32_t)(s[2] & 0x3f) << 10 |
                    (uint32_t)(s[4] & 0x0f) << 6 | (s[5] & 0x3f));
    return 6;
}

static bool decode(const struct str *bytes, struct runes *out)
{
    uint32_t c;
    for (size_t i = 0; i < bytes->len;) {
        size_t size = decode_variant((const unsigned char *)bytes->s + i, bytes->len - i, &c);
        if (!size)
            size = unicode_next(bytes->s + i, bytes->len - i, &c);
        if (c == UNICODE_BAD)
            return false;
        runes_add(out, c);
        i += size;
    }
    return true;
}

static bool decode_whole(const struct runes *text, struct runes *out)
{
    for (size_t i = 0; i < ARRAY_LEN(encodings); i++) {
        CLEANUP(str_release) struct str bytes = { 0 };
        if (!encode(&encodings[i], text, &bytes))
            continue;
        if (encodings[i].mend_a0)
            restore_a0(&bytes);
        if (encodings[i].sloppy)
            replace_lossy(&bytes);
        out->n = 0;
        if (decode(&bytes, out))
            return true;
    }
    return false;
}

/* Fixes the runs of characters that look like UTF-8 each by itself. */
static void decode_parts(const struct runes *text, struct runes *out)
{
    out->n = 0;
    for (size_t i = 0; i < text->n;) {
        size_t run = mojibake_run(text->at, text->n, i);
        /* The whole text was tried before: this comes to an end because the parts are shorter. */
        if (run && run < text->n && mojibake_found(text->at + i, run)) {
            CLEANUP(runes_release) struct runes part = { 0 };
            runes_addn(&part, text->at + i, run);
            fix_encoding(&part);
            runes_addn(out, part.at, part.n);
        } else {
            runes_addn(out, text->at + i, run ? run : 1);
        }
        i += run ? run : 1;
    }
}

/* C1 controls become the characters that Windows-1252 has in their place. */
static void fix_c1(struct runes *text)
{
    const struct encoding *e = NULL;
    for (size_t i = 0; i < ARRAY_LEN(encodings); i++)
        if (!strcmp(encodings[i].name, "sloppy-windows-1252"))
            e = &encodings[i];
    for (size_t i = 0; i < text->n; i++)
        for (size_t k = 0; text->at[i] >= 0x80 && text->at[i] <= 0x9f && k < ARRAY_LEN(e->map); k++)
            if (e->map[k].byte == text->at[i]) {
                text->at[i] = e->map[k].c;
                break;
            }
}

static bool is_ascii(const struct runes *text)
{
    for (size_t i = 0; i < text->n; i++)
        if (text->at[i] >= 0x80)
            return false;
    return true;
}

/* Each step makes the text shorter or takes a C1 control or a sign of mojibake out of it, so there is an end. */
void fix_encoding(struct runes *text)
{
    CLEANUP(runes_release) struct runes out = { 0 };
    while (!is_ascii(text) && mojibake_found(text->at, text->n)) {
        if (!decode_whole(text, &out)) {
            decode_parts(text, &out);
            if (runes_equal(text, &out))
                fix_c1(&out);
        }
        if (runes_equal(text, &out))
            return;
        runes_swap(text, &out);
    }
}
