/* SPDX-License-Identifier: Apache-2.0 */
#include "chip/gfxname.h"

#include "base/cleanup.h"
#include "check.h"

static void kfd_numbers_have_hex_steppings(void)
{
    static const struct {
        uint64_t v;
        const char *name;
    } cases[] = { { 90000, "gfx900" },   { 90010, "gfx90a" },   { 90012, "gfx90c" },   { 90402, "gfx942" },
                  { 90500, "gfx950" },   { 100301, "gfx1031" }, { 110000, "gfx1100" }, { 110501, "gfx1151" },
                  { 120001, "gfx1201" }, { 80003, "gfx803" } };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char name[GFXNAME_MAX];
        CHECK(gfxname_from_kfd(cases[i].v, name));
        CHECK_STR(name, cases[i].name);
    }
}

static void numbers_that_are_no_target(void)
{
    char name[GFXNAME_MAX];
    static const uint64_t bad[] = { 0, 1, 90016, 91600, 50000, 1000000, UINT64_MAX };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK(!gfxname_from_kfd(bad[i], name));
}

static void names_split(void)
{
    int major, minor, stepping;
    REQUIRE(gfxname_split("gfx90a", &major, &minor, &stepping));
    CHECK_INT(major * 10000 + minor * 100 + stepping, 90010);
    REQUIRE(gfxname_split("gfx1151", &major, &minor, &stepping));
    CHECK_INT(major * 10000 + minor * 100 + stepping, 110501);
    static const char *const bad[] = { "",         "gfx",     "gfx90",         "gfx90G",  "gfx11510", "1151",
                                       "gfx1151 ", "GFX1151", "gfx11-generic", "gfx-101", "gfx10\x01" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (gfxname_split(bad[i], &major, &minor, &stepping))
            CHECK_FAIL_("\"%s\" was taken for a name", bad[i]);
}

static void names_of_targets(void)
{
    static const struct {
        const char *text;
        size_t span;
    } rows[] = {
        { "gfx900", 6 },
        { "gfx1151.dat", 7 },
        { "gfx90a-xnack+", 6 },
        { "gfx9-4-generic", 14 },
        { "gfx11-generic:x", 13 },
        { "gfx110x", 0 },
        { "gfx110X-dgpu", 0 },
        { "gfx", 0 },
        { "gfx12", 0 },
        { "gfx1234567", 0 },
        { "gfxabc", 0 },
        { "gfx1030_36", 7 },
        { "gfx9-generi", 0 },
        { "gfx-generic", 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (gfxname_span(rows[i].text, strlen(rows[i].text)) != rows[i].span)
            CHECK_FAIL_("%s: %zu, want %zu", rows[i].text, gfxname_span(rows[i].text, strlen(rows[i].text)),
                        rows[i].span);
    CHECK_INT(gfxname_span_glued("gfx90a68.HIP", 12), 6);
    CHECK_INT(gfxname_span_glued("gfx94230.db", 11), 6);
    CHECK_INT(gfxname_span_glued("gfx1030_36.db", 13), 7);
    CHECK_INT(gfxname_span_glued("gfx103", 6), 0);
}

int main(void)
{
    RUN(kfd_numbers_have_hex_steppings);
    RUN(numbers_that_are_no_target);
    RUN(names_split);
    RUN(names_of_targets);
    return check_done();
}
