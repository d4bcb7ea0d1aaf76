/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "check.h"

static void grows_from_nothing(void)
{
    CLEANUP(str_release) struct str t = { 0 };
    str_add(&t, "");
    CHECK_STR(t.s, "");
    str_add(&t, "HSA");
    str_addn(&t, "_XNACK and more", 6);
    str_addf(&t, "=%d", 1);
    CHECK_STR(t.s, "HSA_XNACK=1");
    CHECK_INT(t.len, 11);
}

static void stays_terminated_at_every_length(void)
{
    CLEANUP(str_release) struct str t = { 0 };
    for (size_t i = 0; i < 5000; i++) {
        str_addn(&t, i % 2 ? "a" : "b", 1);
        if (t.len != i + 1 || t.s[i + 1] != '\0' || t.cap <= t.len) {
            CHECK_INT(t.len, i + 1);
            return;
        }
    }
    CHECK_INT(strlen(t.s), 5000);
}

/* The formatted piece may be exactly as long as the room that is left. */
static void formats_at_every_boundary(void)
{
    for (int have = 0; have < 130; have++) {
        CLEANUP(str_release) struct str t = { 0 };
        for (int i = 0; i < have; i++)
            str_addn(&t, "x", 1);
        str_addf(&t, "%s", "0123456789");
        CHECK_INT(t.len, have + 10);
        CHECK(str_ends(t.s, "0123456789"));
    }
}

static void release_leaves_an_empty_string(void)
{
    struct str t = { 0 };
    str_release(&t);
    str_add(&t, "a");
    str_release(&t);
    CHECK(t.s == NULL && t.len == 0 && t.cap == 0);
    str_add(&t, "b");
    CHECK_STR(t.s, "b");
    str_release(&t);
}

static void equality_knows_null(void)
{
    CHECK(str_eq(NULL, NULL));
    CHECK(str_eq("a", "a"));
    CHECK(!str_eq("a", NULL));
    CHECK(!str_eq(NULL, "a"));
    CHECK(!str_eq("a", "ab"));
}

static void starts_and_ends(void)
{
    CHECK(str_starts("gfx1151", "gfx"));
    CHECK(str_starts("gfx", ""));
    CHECK(!str_starts("gf", "gfx"));
    CHECK(str_ends("libtorch_hip.so", ".so"));
    CHECK(str_ends("x", ""));
    CHECK(!str_ends("so", ".so"));
    CHECK(!str_ends("libamdhip64.so.6", ".so"));
}

static void list_matches_whole_entries(void)
{
    CHECK(str_list_has("gfx1100,gfx1101,gfx90a", ',', "gfx1100"));
    CHECK(str_list_has("gfx1100,gfx1101,gfx90a", ',', "gfx1101"));
    CHECK(str_list_has("gfx1100,gfx1101,gfx90a", ',', "gfx90a"));
    CHECK(!str_list_has("gfx1100,gfx1101,gfx90a", ',', "gfx110"));
    CHECK(!str_list_has("gfx1100,gfx1101,gfx90a", ',', "gfx90"));
    CHECK(!str_list_has("gfx1100,gfx1101,gfx90a", ',', "fx1101"));
    CHECK(!str_list_has("", ',', "gfx90a"));
    CHECK(str_list_has("a,,b", ',', ""));
    CHECK(str_list_has("/opt/rocm:/usr", ':', "/usr"));
}

static const struct {
    const char *a, *b;
    int order;
} order_rows[] = {
    { "node2", "node10", -1 },
    { "node10", "node2", 1 },
    { "node2", "node2", 0 },
    { "card0", "card0-DP-1", -1 },
    { "9", "10", -1 },
    { "a", "b", -1 },
    { "", "a", -1 },
    { "rocm-6.4.1", "rocm-6.10", -1 },
    { "18446744073709551616", "18446744073709551617", -1 }, /* longer than any integer type */
    { "a1b2", "a1b10", -1 },
    { "\xff", "a", 1 },
};

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

static void natural_order(void)
{
    for (size_t i = 0; i < ARRAY_LEN(order_rows); i++) {
        const char *a = order_rows[i].a, *b = order_rows[i].b;
        if (sign(str_compare_natural(a, b)) != order_rows[i].order)
            CHECK_FAIL_("\"%s\" against \"%s\": %d", a, b, str_compare_natural(a, b));
        if (sign(str_compare_natural(b, a)) != -order_rows[i].order)
            CHECK_FAIL_("not symmetric: \"%s\", \"%s\"", b, a);
    }
}

static const struct {
    const char *text;
    size_t clean;
} clean_rows[] = {
    { "plain", 5 },
    { "", 0 },
    { "a\tb", 1 },
    { "a\x7f", 1 },
    { "\x1b[31m", 0 },
    { "gr\xc3\xbc\xc3\x9f", 6 }, /* two-byte letters */
    { "\xe2\x82\xac", 3 },       /* three bytes: the euro sign */
    { "\xf0\x9f\x94\xa5", 4 },   /* four bytes */
    { "ab\xff", 2 },             /* never a lead byte */
    { "a\x80", 1 },              /* a continuation without its lead */
    { "a\xc3", 1 },              /* cut short */
    { "\xc0\x80", 0 },           /* overlong NUL */
    { "\xe0\x80\xaf", 0 },       /* overlong slash */
    { "\xed\xa0\x80", 0 },       /* a surrogate */
    { "\xf4\x90\x80\x80", 0 },   /* above U+10FFFF */
    { "\xf4\x8f\xbf\xbf", 4 },   /* U+10FFFF itself */
    { "\xe2\x28\xa1", 0 },       /* wrong second byte */
    { "a\xc2\x9b"
      "31m",
      1 },                     /* U+009B, which some terminals obey like ESC [ */
    { "\xc2\xa0\xc2\xb5", 4 }, /* a hard space, the micro sign */
};

static void clean_span_is_valid_utf8(void)
{
    for (size_t i = 0; i < ARRAY_LEN(clean_rows); i++) {
        size_t got = str_clean_span(clean_rows[i].text, strlen(clean_rows[i].text));
        if (got != clean_rows[i].clean)
            CHECK_FAIL_("row %zu: %zu clean bytes, want %zu", i, got, clean_rows[i].clean);
    }
    CHECK_INT(str_clean_span("a\0b", 3), 1);
    CHECK_INT(str_clean_span("\xe2\x82\xac", 2), 0); /* the length counts, not the terminator */
}

static void knows_utf8(void)
{
    CHECK(str_is_utf8("") && str_is_utf8("w\xc3\xa4r\n") && str_is_utf8("\xf0\x9f\x99\x82"));
    CHECK(!str_is_utf8("\xff") && !str_is_utf8("a\xc3") && !str_is_utf8("\xc0\x80") &&
          !str_is_utf8("\xed\xa0\x80"));
}

static void cleaning_replaces_each_bad_byte(void)
{
    CLEANUP(str_release) struct str t = { 0 };
    str_add_clean(&t, "", 0);
    CHECK_STR(t.s, "");
    static const char text[] = "\x1b[31mgr\xc3\xbcn\xff\xc3\n";
    str_add_clean(&t, text, sizeof(text) - 1);
    CHECK_STR(t.s, "?[31mgr\xc3\xbcn???");
}

static void lines_are_walked(void)
{
    const char *line = "one\n\nthree";
    CHECK_STR(line = str_next_line(line), "\nthree");
    CHECK_STR(line = str_next_line(line), "three");
    CHECK(!str_next_line(line));
    CHECK_STR(str_next_line("a\n"), "");
}

static void a_file_has_a_name(void)
{
    CHECK_STR(str_file_name("/usr/bin/env"), "env");
    CHECK_STR(str_file_name("env"), "env");
    CHECK_STR(str_file_name("bin/"), "");
}

static void text_is_wrapped_between_words(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "" },
        { "one two", "one two" },
        { "one two three", "one two\n  three" },
        { "a  b", "a  b" },
        { "a much-longer-than-that", "a\n  much-longer-than-that" },
        { "\303\244\303\244\303\244\303\244 \303\244\303\244\303\244",
          "\303\244\303\244\303\244\303\244 \303\244\303\244\303\244" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(str_release) struct str s = { 0 };
        str_add(&s, "");
        str_add_wrapped(&s, cases[i].text, 0, 2, 8);
        CHECK_STR(s.s ? s.s : "", cases[i].want);
    }
}

int main(void)
{
    RUN(grows_from_nothing);
    RUN(stays_terminated_at_every_length);
    RUN(formats_at_every_boundary);
    RUN(release_leaves_an_empty_string);
    RUN(equality_knows_null);
    RUN(starts_and_ends);
    RUN(list_matches_whole_entries);
    RUN(natural_order);
    RUN(clean_span_is_valid_utf8);
    RUN(knows_utf8);
    RUN(cleaning_replaces_each_bad_byte);
    RUN(lines_are_walked);
    RUN(a_file_has_a_name);
    RUN(text_is_wrapped_between_words);
    return check_done();
}
