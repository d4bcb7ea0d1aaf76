/* SPDX-License-Identifier: Apache-2.0 */
#include "base/match.h"

#include "check.h"

enum { MOST = 4096 };
struct found {
    size_t index[MOST], at[MOST], n;
};

static void keep(void *to, size_t index, size_t at)
{
    struct found *f = to;
    if (f->n < MOST) {
        f->index[f->n] = index;
        f->at[f->n++] = at;
    }
}

static bool was_found(const struct found *f, size_t index, size_t at)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->index[i] == index && f->at[i] == at)
            return true;
    return false;
}

static struct match_set *make(const char *const *strings, size_t n)
{
    struct cairn_error err = { 0 };
    struct match_set *m = NULL;
    if (match_set_new(strings, n, &m, &err))
        CHECK_FAIL_("%s", err.msg);
    return m;
}

static void finds_at_every_place(void)
{
    static const char *const strings[] = { "it/s", "HIP out of memory" };
    struct match_set *m = make(strings, 2);
    for (size_t before = 0; before < 9; before++)
        for (size_t after = 0; after < 5; after++) {
            struct found f = { .n = 0 };
            char text[64];
            int n =
                snprintf(text, sizeof(text), "%.*sit/s%.*s", (int)before, "xxxxxxxxx", (int)after, "yyyyy");
            match_set_find(m, text, (size_t)n, keep, &f);
            CHECK_INT(f.n, 1);
            CHECK(was_found(&f, 0, before));
        }
    match_set_free(m);
}

/* Few letters, so that everything nearly matches; beside a search that is too simple to be wrong. */
static void agrees_with_the_plain_search(void)
{
    static const char *const strings[] = { "abab", "aaaa", "bbaab", "abba", "ababab", "bbbbbbbb", "abab" };
    enum { N = sizeof(strings) / sizeof(strings[0]) };
    struct match_set *m = make(strings, N);
    uint32_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        char text[48];
        size_t n = (size_t)round % sizeof(text), want = 0;
        for (size_t i = 0; i < n; i++)
            text[i] = "ab"[(seed = seed * 1664525u + 1013904223u) >> 31];
        struct found f = { .n = 0 };
        match_set_find(m, text, n, keep, &f);
        for (size_t s = 0; s < N; s++)
            for (size_t at = 0; at + strlen(strings[s]) <= n; at++)
                if (!memcmp(text + at, strings[s], strlen(strings[s]))) {
                    want++;
                    CHECK(was_found(&f, s, at));
                }
        CHECK_INT(f.n, want);
    }
    match_set_free(m);
}

static void nothing_in_nothing(void)
{
    struct match_set *m = make(NULL, 0);
    struct found f = { .n = 0 };
    match_set_find(m, "some text", 9, keep, &f);
    match_set_find(m, "", 0, keep, &f);
    CHECK_INT(f.n, 0);
    match_set_free(m);
    match_set_free(NULL);
}

static void refuses_short_strings(void)
{
    static const char *const strings[] = { "long enough", "abc" };
    struct cairn_error err = { 0 };
    struct match_set *m = NULL;
    CHECK_INT(match_set_new(strings, 2, &m, &err), -1);
    CHECK_HAS(err.msg, "abc");
    CHECK_INT(match_set_new(strings, MATCH_MOST + 1, &m, &err), -1);
    CHECK(!m);
}

static void any_of_some(void)
{
    CHECK(match_any("out of memory", 13, "disk|memory"));
    CHECK(!match_any("out of memory", 12, "disk|memory"));
    CHECK(!match_any("", 0, "a|b"));
}

/* Programs do not agree on case, nor on quotes. */
static void case_and_quotes_do_not_count(void)
{
    static const char *const strings[] = { "HIP error: No Kernel", "version `GLIBCXX_", "can't open" };
    static const struct {
        const char *text;
        size_t index;
    } rows[] = {
        { "hip ERROR: no kernel image", 0 },
        { "Hip Error: No kernel image", 0 },
        { "version 'GLIBCXX_3.4.30' not found", 1 },
        { "VERSION \"glibcxx_3.4.30\"", 1 },
        { "CAN`T OPEN file", 2 },
    };
    struct match_set *m = make(strings, 3);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t before = 0; before < 3; before++) {
            struct found f = { .n = 0 };
            char text[64];
            int n = snprintf(text, sizeof(text), "%.*s%s", (int)before, "xx", rows[i].text);
            match_set_find(m, text, (size_t)n, keep, &f);
            CHECK_INT(f.n, 1);
            CHECK(was_found(&f, rows[i].index, before));
        }
    struct found none = { .n = 0 };
    match_set_find(m, "hip-error: no kernel, version ;glibcxx_", 39, keep, &none);
    CHECK_INT(none.n, 0);
    match_set_free(m);
    CHECK(match_any("Out Of Memory", 13, "disk|out of memory"));
    static const char text[] = "B b abC";
    CHECK(match_find(text, 7, "AB") == text + 4);
    CHECK(match_find(text, 7, "b") == text);
    CHECK(match_find(text, 7, "B") == text);
    CHECK(match_find(text, 7, "abc") == text + 4);
    CHECK(match_find(text, 6, "abc") == NULL);
    CHECK(match_find(text, 7, "") == text);
    CHECK(match_any("the `file'", 10, "\"FILE\""));
    CHECK(!match_any("the [file]", 10, "{file}"));
}

static void a_string_of_quotes_cannot_be_looked_for(void)
{
    static const char *const strings[] = { "ab'cd'ef" };
    struct cairn_error err = { 0 };
    struct match_set *m = NULL;
    CHECK_INT(match_set_new(strings, 1, &m, &err), -1);
    CHECK(!m);
}

int main(void)
{
    RUN(finds_at_every_place);
    RUN(agrees_with_the_plain_search);
    RUN(nothing_in_nothing);
    RUN(refuses_short_strings);
    RUN(any_of_some);
    RUN(case_and_quotes_do_not_count);
    RUN(a_string_of_quotes_cannot_be_looked_for);
    return check_done();
}
