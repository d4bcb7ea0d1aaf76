/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include "base/cleanup.h"
#include "base/splitmix.h"
#include "check.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    bool ok;
    uint64_t value;
} u64_rows[] = {
    { "0", true, 0 },
    { "42", true, 42 },
    { "007", true, 7 },
    { "18446744073709551615", true, UINT64_MAX },
    { "18446744073709551616", false, 0 },
    { "99999999999999999999999", false, 0 },
    { "", false, 0 },
    { " 1", false, 0 },
    { "1 ", false, 0 },
    { "-1", false, 0 },
    { "+1", false, 0 },
    { "0x10", false, 0 },
    { "1e3", false, 0 },
    { "4O", false, 0 },
    { "1.0", false, 0 },
};

static void u64_takes_all_or_nothing(void)
{
    for (size_t i = 0; i < ARRAY_LEN(u64_rows); i++) {
        uint64_t v = 12345;
        bool ok = cairn_parse_u64(u64_rows[i].text, &v);
        uint64_t want = u64_rows[i].ok ? u64_rows[i].value : 12345; /* untouched when refused */
        if (ok != u64_rows[i].ok || v != want)
            CHECK_FAIL_("\"%s\": %d, %" PRIu64, u64_rows[i].text, ok, v);
    }
}

static void i64_range(void)
{
    int64_t v = 5;
    CHECK(cairn_parse_i64("-1", &v) && v == -1);
    CHECK(cairn_parse_i64("9223372036854775807", &v) && v == INT64_MAX);
    CHECK(cairn_parse_i64("-9223372036854775807", &v) && v == -INT64_MAX);
    v = 5;
    CHECK(!cairn_parse_i64("9223372036854775808", &v));
    CHECK(!cairn_parse_i64("--1", &v));
    CHECK(!cairn_parse_i64("-", &v));
    CHECK(!cairn_parse_i64("", &v));
    CHECK(!cairn_parse_i64("1-", &v));
    CHECK_INT(v, 5);
}

static void hex_with_and_without_prefix(void)
{
    uint64_t v = 5;
    CHECK(cairn_parse_hex("0x1002", &v) && v == 0x1002);
    CHECK(cairn_parse_hex("1586", &v) && v == 0x1586);
    CHECK(cairn_parse_hex("0XdeadBEEF", &v) && v == 0xdeadbeef);
    CHECK(cairn_parse_hex("0xffffffffffffffff", &v) && v == UINT64_MAX);
    v = 5;
    CHECK(!cairn_parse_hex("0x10000000000000000", &v));
    CHECK(!cairn_parse_hex("0x", &v));
    CHECK(!cairn_parse_hex("", &v));
    CHECK(!cairn_parse_hex("0x0x1", &v));
    CHECK(!cairn_parse_hex("12g", &v));
    CHECK_INT(v, 5);
}

static void pair_of_name_and_number(void)
{
    char name[16];
    uint64_t v = 5;
    CHECK(cairn_parse_pair("simd_count 80\n", name, sizeof(name), &v) && v == 80);
    CHECK_STR(name, "simd_count");
    CHECK(cairn_parse_pair("unique_id 18446744073709551615", name, sizeof(name), &v) && v == UINT64_MAX);
    CHECK_STR(name, "unique_id");
}

static void damaged_pairs_are_refused(void)
{
    static const char *const bad[] = {
        "",
        "\n",
        " 1",
        "simd_count",
        "simd_count ",
        "simd_count\n80",
        "simd_count  80",
        "simd_count 80 ",
        "simd_count -1",
        "simd_count 0x10",
        "simd_count\t80",
        "simd_count 80x",
        "80",
        "simd_count 18446744073709551616",
        "a_name_that_has_no_room 1",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char name[16] = "kept";
        uint64_t v = 5;
        if (cairn_parse_pair(bad[i], name, sizeof(name), &v) || v != 5 || strcmp(name, "kept") != 0)
            CHECK_FAIL_("\"%s\" was taken", bad[i]);
    }
}

static void pair_name_fills_its_room(void)
{
    char name[4];
    uint64_t v;
    CHECK(cairn_parse_pair("abc 1", name, sizeof(name), &v));
    CHECK_STR(name, "abc");
    CHECK(!cairn_parse_pair("abcd 1", name, sizeof(name), &v));
}

static const struct {
    const char *text;
    struct version want; /* n 0: refused */
} version_rows[] = {
    { "6.17.0-12-generic", { 3, { 6, 17, 0 }, false } },
    { "2.9.1+rocm6.4", { 3, { 2, 9, 1 }, false } },
    { "v7.2", { 2, { 7, 2, 0 }, false } },
    { "6.18.0-rc6", { 3, { 6, 18, 0 }, true } },
    { "2.12.0a0+git1234", { 3, { 2, 12, 0 }, true } },
    { "2.14.0.dev20260901+rocm7.0", { 3, { 2, 14, 0 }, true } },
    { "0.50.0b1", { 3, { 0, 50, 0 }, true } },
    { "6.4.43484-123abc", { 3, { 6, 4, 43484 }, false } },
    { "7", { 1, { 7, 0, 0 }, false } },
    { "6.", { 1, { 6, 0, 0 }, false } },
    { "6.4.1.7", { 3, { 6, 4, 1 }, false } },
    { "6.6.87.2-microsoft-standard-WSL2", { 3, { 6, 6, 87 }, false } },
    { "", { 0, { 0 }, false } },
    { "v", { 0, { 0 }, false } },
    { ".1", { 0, { 0 }, false } },
    { "-1.2", { 0, { 0 }, false } },
    { "rocm6.4", { 0, { 0 }, false } },
    { "99999999999.1", { 0, { 0 }, false } },
};

static bool same_version(struct version a, struct version b)
{
    return a.n == b.n && a.pre == b.pre && !memcmp(a.part, b.part, sizeof(a.part));
}

static void versions_as_they_are_written(void)
{
    for (size_t i = 0; i < ARRAY_LEN(version_rows); i++) {
        struct version v = { 0 }, want = version_rows[i].want;
        bool ok = version_parse(version_rows[i].text, &v);
        if (ok != (want.n > 0) || !same_version(v, want))
            CHECK_FAIL_("\"%s\": %d: %d.%d.%d of %d parts, pre %d", version_rows[i].text, ok, v.part[0],
                        v.part[1], v.part[2], v.n, v.pre);
    }
}

/* Each row is older than the one below it. */
static void versions_in_order(void)
{
    static const char *const rising[] = { "2.5",           "2.8.0",     "2.9.0a0", "2.9.0",
                                          "2.9.1+rocm6.4", "2.10.0rc1", "2.10",    "6.17",
                                          "6.18.0-rc6",    "6.18.4",    "10.0" };
    for (size_t i = 0; i < ARRAY_LEN(rising); i++)
        for (size_t k = 0; k < ARRAY_LEN(rising); k++) {
            struct version a, b;
            REQUIRE(version_parse(rising[i], &a) && version_parse(rising[k], &b));
            int want = (i > k) - (i < k);
            if (version_compare(a, b) != want)
                CHECK_FAIL_("%s against %s: %d", rising[i], rising[k], version_compare(a, b));
        }
}

static void unknown_version_is_neither_old_nor_new(void)
{
    struct version none = { 0 }, some = { 1, { 0, 0, 0 }, false };
    CHECK(!version_at_least(none, 0, 0, 0));
    CHECK(!version_below(none, 99, 0, 0));
    CHECK(version_compare(none, some) < 0);
    CHECK(version_compare(some, none) > 0);
    CHECK_INT(version_compare(none, none), 0);
}

static void at_least_and_below(void)
{
    struct version v;
    REQUIRE(version_parse("6.18.4", &v));
    CHECK(version_at_least(v, 6, 18, 4));
    CHECK(version_at_least(v, 6, 9, 9));
    CHECK(!version_at_least(v, 6, 18, 5));
    CHECK(version_below(v, 6, 18, 5));
    CHECK(!version_below(v, 6, 18, 4));
    REQUIRE(version_parse("6.18.4-rc1", &v));
    CHECK(!version_at_least(v, 6, 18, 4));
    CHECK(version_below(v, 6, 18, 4));
}

/* ---- reals ---- */

static void check_real(const char *text)
{
    double got, want = strtod(text, NULL);
    const char *end = cairn_scan_real(text, &got);
    CHECK(end && !*end && !memcmp(&got, &want, sizeof(got)));
}

static void reals_are_those_of_strtod(void)
{
    static const char *const odd[] = {
        "0",
        "-0",
        "0.0",
        "-0.0",
        "1e0",
        "1E+5",
        "1e-5",
        "0.1",
        "1e308",
        "1e309",
        "-1e-320",
        "1e-400",
        "4.9e-324",
        "9007199254740993",
        "9007199254740992.5",
        "1.7976931348623157e308",
        "123456789012345678901234567890",
        "0.000000000000000000000000000001",
        "1.00000000000000011102230246251565",
        "8.5e22",
        "1e27",
        "1e28",
        "1e-27",
        "18446744073709551615",
        "18446744073709551616",
        "00012.5000",
        "0.00120000000000000010000000000000000001",
    };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++)
        check_real(odd[i]);
    uint64_t seed = 1;
    for (int i = 0; i < 200000; i++) {
        char text[64];
        uint64_t bits = splitmix_next(&seed);
        double any, near = (double)(int64_t)splitmix_next(&seed) / 9007199254740992.0;
        memcpy(&any, &bits, sizeof(any));
        snprintf(text, sizeof(text), "%.*g", (int)(bits % 21) + 1, i % 2 && isfinite(any) ? any : near);
        check_real(text);
    }
}

static void a_real_ends_where_its_characters_end(void)
{
    double v;
    const char *text = "12.5,\"x\"";
    CHECK(cairn_scan_real(text, &v) == text + 4 && v == 12.5);
    CHECK(!cairn_scan_real("", &v));
    CHECK(!cairn_scan_real("-", &v));
    CHECK(!cairn_scan_real(".5", &v));
    CHECK(!cairn_scan_real("1.", &v));
    CHECK(!cairn_scan_real("1e", &v));
    CHECK(!cairn_scan_real("1e+", &v));
    CHECK(!cairn_scan_real("nan", &v));
    CHECK(!cairn_scan_real("inf", &v));
}

int main(void)
{
    RUN(u64_takes_all_or_nothing);
    RUN(i64_range);
    RUN(hex_with_and_without_prefix);
    RUN(pair_of_name_and_number);
    RUN(damaged_pairs_are_refused);
    RUN(pair_name_fills_its_room);
    RUN(versions_as_they_are_written);
    RUN(versions_in_order);
    RUN(unknown_version_is_neither_old_nor_new);
    RUN(at_least_and_below);
    RUN(reals_are_those_of_strtod);
    RUN(a_real_ends_where_its_characters_end);
    return check_done();
}
