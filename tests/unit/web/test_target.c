/* SPDX-License-Identifier: Apache-2.0
 * Targets, cookies, ranges and paths: what comes as text from a client. */
#include "web/target.h"

#include "base/cleanup.h"
#include "check.h"
#include "web/cookie.h"
#include "web/folder.h"
#include "web/range.h"
#include "web/types.h"

static void paths_are_split_and_decoded(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct target t;
    CHECK(!target_parse("/", &a, &t));
    CHECK_INT(t.n_parts, 0);
    CHECK(!target_parse("/api/v1/jobs", &a, &t));
    CHECK_INT(t.n_parts, 3);
    CHECK_STR(t.part[0], "api");
    CHECK_STR(t.part[2], "jobs");
    CHECK(!target_parse("/a%20b/%E2%9C%93/+", &a, &t));
    CHECK_STR(t.part[0], "a b");
    CHECK_STR(t.part[1], "\xe2\x9c\x93");
    CHECK_STR(t.part[2], "+");
    CHECK(!target_parse("/a/", &a, &t));
    CHECK_INT(t.n_parts, 2);
    CHECK_STR(t.part[1], "");
    CHECK(!target_parse("/%252e%252e/x", &a, &t)); /* decoded once */
    CHECK_STR(t.part[0], "%2e%2e");
}

static void queries_are_pairs(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct target t;
    CHECK(!target_parse("/x?a=1&b=two%20words&c&d=&e=1+2&a=3&&f==", &a, &t));
    CHECK_STR(target_value(&t, "a"), "1");
    CHECK_STR(target_value(&t, "b"), "two words");
    CHECK_STR(target_value(&t, "c"), "");
    CHECK_STR(target_value(&t, "d"), "");
    CHECK_STR(target_value(&t, "e"), "1 2");
    CHECK_STR(target_value(&t, "f"), "=");
    CHECK(!target_value(&t, "g"));
    CHECK(!target_parse("/x?", &a, &t));
    CHECK_INT(t.n_pairs, 0);
    CHECK(!target_parse("/?a=/../b", &a, &t)); /* a query is no path */
    CHECK_STR(target_value(&t, "a"), "/../b");
}

static void wrong_targets_are_refused(void)
{
    static const char *const wrong[] = {
        "",
        "x",
        "http://localhost/",
        "*",
        "//",
        "//a",
        "/a//b",
        "/.",
        "/..",
        "/a/../b",
        "/a/./b",
        "/%2e",
        "/%2e%2e",
        "/%2E%2e/x",
        "/.%2e",
        "/a%2fb",
        "/a%2Fb",
        "/%00",
        "/a%00b",
        "/a%0ab",
        "/a%7fb",
        "/%",
        "/%2",
        "/%zz",
        "/%2g",
        "/a b",
        "/a\tb",
        "/a#b",
        "/\xc3\xa4",
        "/%c3",
        "/%ff",
        "/%c0%af",
        "/%c0%ae/x",
        "/%ed%a0%80",
        "/x?%00=1",
        "/x?a=%0a",
        "/x?a=%",
        "/x?a=%4",
        "/x?a=%c0%af",
        "/x?a=b c",
        "/x?a=#",
        "?x=1",
        "/a\\b\x01",
        "/%f5%80%80%80",
    };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct target t;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (!target_parse(wrong[i], &a, &t))
            CHECK_FAIL_("\"%s\" is accepted", wrong[i]);
}

static void long_targets_are_refused(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct target t;
    char many[512] = "";
    for (int i = 0; i < TARGET_PARTS; i++)
        strcat(many, "/a");
    CHECK(!target_parse(many, &a, &t));
    strcat(many, "/a");
    CHECK(target_parse(many, &a, &t));
    strcpy(many, "/?");
    for (int i = 0; i < TARGET_PAIRS; i++)
        strcat(many, "a&");
    CHECK(!target_parse(many, &a, &t));
    strcat(many, "a");
    CHECK(target_parse(many, &a, &t));
}

static void check_range(const char *header, uint64_t size, enum range_kind kind, uint64_t from, uint64_t n)
{
    uint64_t got_from = 0, got_n = 0;
    enum range_kind got = range_parse(header, size, &got_from, &got_n);
    if (got != kind || (kind == RANGE_PART && (got_from != from || got_n != n)))
        CHECK_FAIL_("%s of %" PRIu64 ": kind %d, %" PRIu64 " bytes from %" PRIu64, header, size, got, got_n,
                    got_from);
}

static void ranges_are_within_the_file(void)
{
    check_range(NULL, 10, RANGE_ALL, 0, 0);
    check_range("bytes=0-9", 10, RANGE_PART, 0, 10);
    check_range("bytes=0-0", 10, RANGE_PART, 0, 1);
    check_range("bytes=3-", 10, RANGE_PART, 3, 7);
    check_range("bytes=-3", 10, RANGE_PART, 7, 3);
    check_range("BYTES=-3", 10, RANGE_PART, 7, 3);
    check_range("bytes=-30", 10, RANGE_PART, 0, 10);
    check_range("bytes=5-100", 10, RANGE_PART, 5, 5);
    check_range("bytes=9-18446744073709551615", 10, RANGE_PART, 9, 1);
    check_range("bytes=0-99999999999999999999999", 10, RANGE_PART, 0, 10);
    check_range("bytes=10-", 10, RANGE_NONE, 0, 0);
    check_range("bytes=99999999999999999999999-", 10, RANGE_NONE, 0, 0);
    check_range("bytes=0-", 0, RANGE_NONE, 0, 0);
    check_range("bytes=-1", 0, RANGE_NONE, 0, 0);
    check_range("bytes=-0", 10, RANGE_NONE, 0, 0);
    static const char *const other[] = { "",           "bytes",      "bytes=",     "bytes=-",
                                         "bytes=a-b",  "bytes=1",    "bytes=5-2",  "bytes=0-1,2-3",
                                         "bytes=0-1,", "bytes= 0-1", "bytes=0 -1", "bytes=0-1 ",
                                         "items=0-1",  "bytes=--1",  "bytes=+1-2", "bytes=0x1-2" };
    for (size_t i = 0; i < ARRAY_LEN(other); i++)
        check_range(other[i], 10, RANGE_ALL, 0, 0);
}

/* A plain model: the bytes that a range names, one by one. */
static void ranges_agree_with_a_model(void)
{
    char header[64];
    for (int size = 0; size <= 6; size++)
        for (int first = -1; first <= 8; first++)
            for (int last = -1; last <= 8; last++) {
                if (first < 0 && last < 0)
                    continue;
                char a[8] = "", b[8] = "";
                if (first >= 0)
                    snprintf(a, sizeof(a), "%d", first);
                if (last >= 0)
                    snprintf(b, sizeof(b), "%d", last);
                snprintf(header, sizeof(header), "bytes=%s-%s", a, b);
                int from = -1, n = 0;
                for (int i = 0; i < size; i++) {
                    bool in = first >= 0 ? i >= first && (last < 0 || i <= last) : i >= size - last;
                    from = in && from < 0 ? i : from;
                    n += in;
                }
                if (first >= 0 && last >= 0 && last < first)
                    check_range(header, (uint64_t)size, RANGE_ALL, 0, 0);
                else if (!n)
                    check_range(header, (uint64_t)size, RANGE_NONE, 0, 0);
                else
                    check_range(header, (uint64_t)size, RANGE_PART, (uint64_t)from, (uint64_t)n);
            }
}

static void check_cookie(const char *header, const char *want)
{
    size_t n = 0;
    const char *value = cookie_find(header, "cairn_22476", &n);
    if (!want ? value != NULL : !value || strlen(want) != n || memcmp(value, want, n))
        CHECK_FAIL_("\"%s\": %.*s", header, value ? (int)n : 6, value ? value : "(none)");
}

static void cookies_are_found_by_their_whole_name(void)
{
    check_cookie("cairn_22476=abc", "abc");
    check_cookie("a=b; cairn_22476=abc; c=d", "abc");
    check_cookie("a=b;cairn_22476=abc", "abc");
    check_cookie("cairn_22476=abc ; x=y", "abc");
    check_cookie("cairn_22476=", "");
    check_cookie("cairn_22476=a=b", "a=b");
    check_cookie("cairn_22476=first; cairn_22476=second", "first");
    check_cookie("", NULL);
    check_cookie("cairn_22476", NULL);
    check_cookie("xcairn_22476=abc", NULL);
    check_cookie("cairn_224761=abc", NULL);
    check_cookie("cairn_22475=abc", NULL);
    check_cookie("x=cairn_22476=abc", NULL);
    check_cookie("CAIRN_22476=abc", NULL);
    check_cookie(";;; ;", NULL);
}

static void paths_below_folders(void)
{
    const char *why = NULL;
    char name[256];
    static const char *const right[] = { "a",    "a.png", "a/b/c.txt", "with space", "gr\xc3\xbc\xc3\x9f",
                                         "a..b", "a.",    "~",         "-x",         "a\\b" };
    static const char *const wrong[] = { "",      "/a",   "a/",         "a//b", ".",    "..",
                                         ".a",    "a/.b", "a/../b",     "../a", "a/..", "a\nb",
                                         "a\x7f", "\xff", "a/\xc0\xaf", "a\tb", "./a",  ".cairn-trash/x" };
    for (size_t i = 0; i < ARRAY_LEN(right); i++)
        if (!folder_path_is_valid(right[i], &why))
            CHECK_FAIL_("\"%s\": %s", right[i], why);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        if (folder_path_is_valid(wrong[i], &why))
            CHECK_FAIL_("\"%s\" is accepted", wrong[i]);
    memset(name, 'x', sizeof(name));
    name[200] = '\0';
    CHECK(folder_path_is_valid(name, &why));
    name[200] = 'x';
    name[201] = '\0';
    CHECK(!folder_path_is_valid(name, &why));
    CHECK(folder_name_is_valid("data-1_x.y"));
    CHECK(!folder_name_is_valid(".x") && !folder_name_is_valid("") && !folder_name_is_valid("a/b") &&
          !folder_name_is_valid("a b"));
}

static void nothing_that_runs_is_shown(void)
{
    static const char *const runs[] = { "a.html", "a.svg",  "a.js",  "a.css", "a",  "a.xml",
                                        "a.htm",  "a.HTML", "a.pdf", ".png",  "png" };
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        if (type_of(runs[i])->flags & (TYPE_SHOWN | TYPE_UPLOADED))
            CHECK_FAIL_("%s", runs[i]);
    CHECK(type_of("a.PNG")->flags & TYPE_SHOWN);
    CHECK_STR(type_of("x/y.jpeg")->type, "image/jpeg");
    for (unsigned i = 0; i < n_types; i++)
        CHECK(types[i].end[0] == '.' && strchr(types[i].type, '/'));
}

int main(void)
{
    RUN(paths_are_split_and_decoded);
    RUN(queries_are_pairs);
    RUN(wrong_targets_are_refused);
    RUN(long_targets_are_refused);
    RUN(ranges_are_within_the_file);
    RUN(ranges_agree_with_a_model);
    RUN(cookies_are_found_by_their_whole_name);
    RUN(paths_below_folders);
    RUN(nothing_that_runs_is_shown);
    return check_done();
}
