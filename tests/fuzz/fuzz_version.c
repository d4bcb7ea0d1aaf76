/* SPDX-License-Identifier: Apache-2.0
 * Numbers and versions from any text: what is taken means what it says, the order is an order. */
#include "base/parse.h"

#include "base/cleanup.h"
#include "fuzz.h"
#include <inttypes.h>

/* Without the zeros in front, so that it can be compared with what printf writes. */
static const char *plain_digits(const char *s)
{
    s += strspn(s, "0");
    return *s ? s : "0";
}

static void check_numbers(const char *text)
{
    char again[32];
    uint64_t u;
    int64_t i;
    if (cairn_parse_u64(text, &u)) {
        snprintf(again, sizeof(again), "%" PRIu64, u);
        FUZZ_REQUIRE(*text && !strcmp(again, plain_digits(text)));
    }
    if (cairn_parse_i64(text, &i)) {
        snprintf(again, sizeof(again), "%" PRId64, i < 0 ? -i : i);
        FUZZ_REQUIRE(i >= -INT64_MAX && !strcmp(again, plain_digits(text + (*text == '-'))));
    }
    if (cairn_parse_hex(text, &u))
        FUZZ_REQUIRE(u == strtoull(text, NULL, 16));
}

static void check_pair(const char *text)
{
    char name[16], number[64], again[64];
    uint64_t v;
    if (!cairn_parse_pair(text, name, sizeof(name), &v))
        return;
    size_t key = strlen(name), digits = strspn(text + key + 1, "0123456789");
    FUZZ_REQUIRE(key > 0 && key < sizeof(name) && !strncmp(text, name, key) && text[key] == ' ');
    FUZZ_REQUIRE(strchr("\r\n", text[key + 1 + digits])); /* nothing but digits up to the end of the line */
    const char *from = text + key + 1;
    size_t zeros = strspn(from, "0"), skip = zeros < digits ? zeros : digits - 1;
    snprintf(number, sizeof(number), "%.*s", (int)(digits - skip), from + skip);
    snprintf(again, sizeof(again), "%" PRIu64, v);
    FUZZ_REQUIRE(!strcmp(number, again));
}

static bool parse_checked(const char *text, struct version *v)
{
    if (!version_parse(text, v))
        return false;
    FUZZ_REQUIRE(v->n >= 1 && v->n <= 3);
    char again[64];
    int n = snprintf(again, sizeof(again), "%d.%d.%d", v->part[0], v->part[1], v->part[2]);
    struct version back = { 0 };
    FUZZ_REQUIRE(n > 0 && version_parse(again, &back));
    back.pre = v->pre;
    FUZZ_REQUIRE(version_compare(*v, back) == 0);
    return true;
}

static void check_order(struct version a, struct version b)
{
    FUZZ_REQUIRE(version_compare(a, b) == -version_compare(b, a));
    FUZZ_REQUIRE(version_compare(a, a) == 0);
    bool at_least = version_at_least(a, b.part[0], b.part[1], b.part[2]);
    FUZZ_REQUIRE(at_least != version_below(a, b.part[0], b.part[1], b.part[2]));
    if (!b.pre)
        FUZZ_REQUIRE(at_least == (version_compare(a, b) >= 0));
}

/* Two versions in one input, one behind the other's line feed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem_free) char *text = fuzz_text(data, size);
    check_numbers(text);
    check_pair(text);
    char *second = strchr(text, '\n');
    if (second)
        *second++ = '\0';
    struct version a = { 0 }, b = { 0 };
    if (parse_checked(text, &a) && second && parse_checked(second, &b))
        check_order(a, b);
    return 0;
}
