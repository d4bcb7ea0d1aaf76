/* SPDX-License-Identifier: Apache-2.0 */
#include "text/split.h"

#include "base/str.h"
#include "check.h"
#include "text/unicode.h"

/* The words of a text with a bar between them. */
static const char *words(enum split_kind kind, const char *text)
{
    static struct str out;
    out.len = 0;
    size_t n = strlen(text);
    for (size_t at = 0, size; at < n; at += size) {
        size = split_next(kind, text + at, n - at);
        str_add(&out, at ? "|" : "");
        str_addn(&out, text + at, size);
    }
    return out.s;
}

static void gpt2(void)
{
    CHECK_STR(words(SPLIT_GPT2, "Hello world"), "Hello| world");
    CHECK_STR(words(SPLIT_GPT2, "it's we'll 'x THEY'RE"), "it|'s| we|'ll| '|x| THEY|'|RE");
    CHECK_STR(words(SPLIT_GPT2, "a  b   c"), "a| | b|  | c");
    CHECK_STR(words(SPLIT_GPT2, "a \n\n b  "), "a| \n\n| b|  ");
    CHECK_STR(words(SPLIT_GPT2, "x=12345+y!!"), "x|=|12345|+|y|!!");
    CHECK_STR(words(SPLIT_GPT2, "f(x)  # no"), "f|(|x|)| | #| no");
    CHECK_STR(words(SPLIT_GPT2, "日本語、テスト 1２"), "日本語|、|テスト| 1２");
    CHECK_STR(words(SPLIT_GPT2, "a\xc2\xa0z"), "a|\xc2\xa0|z");
    CHECK_STR(words(SPLIT_GPT2, "a\xff\xfe"
                                "b"),
              "a|\xff\xfe|b");
}

static void cl100k(void)
{
    CHECK_STR(words(SPLIT_CL100K, "THEY'RE it'S a'ſb"), "THEY|'RE| it|'S| a|'ſ|b");
    CHECK_STR(words(SPLIT_CL100K, "12345 x"), "123|45| x");
    CHECK_STR(words(SPLIT_QWEN2, "123 x"), "1|2|3| x");
    CHECK_STR(words(SPLIT_CL100K, "f(x);\n\n  y"), "f|(x|);\n\n| | y");
    CHECK_STR(words(SPLIT_CL100K, "a  \n \n  b"), "a|  \n \n| | b");
    CHECK_STR(words(SPLIT_CL100K, "a\tb\t\tc"), "a|\tb|\t|\tc");
    CHECK_STR(words(SPLIT_CL100K, "a  "), "a|  ");
}

static void digits(void)
{
    CHECK_STR(words(SPLIT_DIGITS, "ab 12c"), "ab |1|2|c");
    CHECK_STR(words(SPLIT_DIGITS, "1"), "1");
}

static void known_expressions(void)
{
    enum split_kind kind = SPLIT_DIGITS;
    CHECK(split_find("'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
                     &kind) &&
          kind == SPLIT_GPT2);
    CHECK(!split_find("\\w+", &kind));
}

static uint32_t state = 7;
static uint32_t dice(uint32_t n)
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % n;
}

static void ends_of_words(enum split_kind kind, const char *s, size_t n, size_t base, bool *ends)
{
    for (size_t at = 0; at < n;) {
        at += split_next(kind, s + at, n - at);
        ends[base + at] = true;
    }
}

/* A text that is cut has the words that it had before. */
static void cuts_change_nothing(void)
{
    static const char *const letters[] = { "a",  "b", ".", "'", "1", " ",  " ",  "\n",     "\n",   "\r",
                                           "\t", "Z", ")", "s", "é", "日", "。", "\u3000", "\xff", "\x80" };
    size_t cuts = 0;
    for (int round = 0; round < 20000; round++) {
        char s[32];
        size_t n = 0;
        for (size_t want = 1 + dice(28); n < want;) {
            const char *c = letters[dice(sizeof(letters) / sizeof(letters[0]))];
            memcpy(s + n, c, strlen(c));
            n += strlen(c);
        }
        size_t cut = split_cut(s, n);
        cuts += cut > 0;
        for (int kind = SPLIT_GPT2; kind <= SPLIT_DIGITS && cut; kind++) {
            bool whole[33] = { 0 }, parts[33] = { 0 };
            ends_of_words((enum split_kind)kind, s, n, 0, whole);
            ends_of_words((enum split_kind)kind, s, cut, 0, parts);
            ends_of_words((enum split_kind)kind, s + cut, n - cut, cut, parts);
            /* Digits has no end at a cut, and what follows it in a tokenizer has. */
            parts[cut] = parts[cut] && (kind != SPLIT_DIGITS || whole[cut]);
            CHECK(!memcmp(whole, parts, sizeof(whole)));
        }
    }
    CHECK(cuts > 500);
}

/* Whatever the bytes, a word has at least one and the last ends with the text. */
static void any_bytes(void)
{
    for (int round = 0; round < 20000; round++) {
        char s[24];
        size_t n = 1 + dice(sizeof(s));
        for (size_t i = 0; i < n; i++)
            s[i] = dice(2) ? (char)dice(256) : "\xf0\x9f\x99\x82 \n'e"[dice(8)];
        for (int kind = SPLIT_GPT2; kind <= SPLIT_DIGITS; kind++)
            for (size_t at = 0, size; at < n; at += size) {
                size = split_next((enum split_kind)kind, s + at, n - at);
                REQUIRE(size > 0 && size <= n - at);
            }
    }
}

static void characters(void)
{
    static const struct {
        const char *text;
        uint32_t c;
        size_t size;
    } rows[] = {
        { "a", 'a', 1 },
        { "\xc3\xa9", 0xe9, 2 },
        { "\xe6\x97\xa5", 0x65e5, 3 },
        { "\xf0\x9f\x99\x82", 0x1f642, 4 },
        { "\xc3", UNICODE_BAD, 1 },
        { "\xc0\x80", UNICODE_BAD, 1 },
        { "\xed\xa0\x80", UNICODE_BAD, 1 },
        { "\xf4\x90\x80\x80", UNICODE_BAD, 1 },
        { "\xe0\x80\x80", UNICODE_BAD, 1 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t c;
        char back[4];
        CHECK_INT(unicode_next(rows[i].text, strlen(rows[i].text), &c), rows[i].size);
        CHECK_INT(c, rows[i].c);
        if (c != UNICODE_BAD)
            CHECK(unicode_put(back, c) == rows[i].size && !memcmp(back, rows[i].text, rows[i].size));
    }
    CHECK_INT(unicode_class_of(0x1f642), UNICODE_OTHER);
    CHECK_INT(unicode_class_of(0x660), UNICODE_NUMBER);
    CHECK_INT(unicode_class_of(0x3000), UNICODE_SPACE);
    CHECK_INT(unicode_class_of(0x200b), UNICODE_OTHER);
    CHECK_INT(unicode_class_of(0x2fa1d), UNICODE_LETTER);
    CHECK_INT(unicode_nfc_span("abc\xc3\xa9", 5), 5);
    CHECK_INT(unicode_nfc_span("abe\xcc\x81", 5), 3);
}

int main(void)
{
    RUN(gpt2);
    RUN(cl100k);
    RUN(digits);
    RUN(known_expressions);
    RUN(cuts_change_nothing);
    RUN(any_bytes);
    RUN(characters);
    return check_done();
}
