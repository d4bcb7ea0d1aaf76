/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "check.h"

/* What json_print writes; the caller frees it. */
static char *printed(const struct json *v)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    json_print(v, f);
    fclose(f);
    return text;
}

static void prints_in_the_order_of_adding(void)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    json_add_text(v, "gfx", "gfx1151");
    json_add_null(v, "power_w");
    json_add_bool(v, "unified_memory", true);
    json_add_real(v, "busy", 0.5);
    struct json *list = json_add_array(v, "a");
    json_add_int(list, NULL, -3);
    json_add_text(list, NULL, NULL);
    json_add_bool(json_add_object(list, NULL), "x", false);
    CLEANUP(mem_free) char *text = printed(v);
    CHECK_STR(text, "{\n"
                    "  \"schema\": 1,\n"
                    "  \"gfx\": \"gfx1151\",\n"
                    "  \"power_w\": null,\n"
                    "  \"unified_memory\": true,\n"
                    "  \"busy\": 0.5,\n"
                    "  \"a\": [\n"
                    "    -3,\n"
                    "    null,\n"
                    "    {\n"
                    "      \"x\": false\n"
                    "    }\n"
                    "  ]\n"
                    "}\n");
}

static void integers_are_whole(void)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_int(v, "max", INT64_MAX);
    json_add_int(v, "min", INT64_MIN);
    CLEANUP(mem_free) char *text = printed(v);
    CHECK_HAS(text, "9223372036854775807");
    CHECK_HAS(text, "-9223372036854775808");
    CLEANUP(json_cleanup) struct json *back = NULL;
    struct cairn_error err = { 0 };
    REQUIRE(json_parse(text, strlen(text), &back, &err) == 0);
    CHECK_INT(json_int(json_get(back, "max"), 0), INT64_MAX);
    CHECK_INT(json_int(json_get(back, "min"), 0), INT64_MIN);
}

static void damaged_text_stays_printable(void)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "plain", "plain" },
        { "", "" },
        { "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
        { "a\xff\xfe"
          "b",
          "a??b" },
        { "\x1b[31mred", "\x1b[31mred" }, /* a control character is text; printing escapes it */
        { "two\nlines\tand", "two\nlines\tand" },
        { "cut \xe2\x82", "cut ??" },
        { "quote \" and \\", "quote \" and \\" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(json_cleanup) struct json *v = json_new_object();
        json_add_text(v, "t", rows[i].text);
        CHECK_STR(json_text(json_get(v, "t")), rows[i].want);
        CLEANUP(mem_free) char *text = printed(v);
        CLEANUP(json_cleanup) struct json *back = NULL;
        struct cairn_error err = { 0 };
        REQUIRE(json_parse(text, strlen(text), &back, &err) == 0);
        CHECK_STR(json_text(json_get(back, "t")), rows[i].want);
    }
}

static void control_characters_are_escaped(void)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_text(v, "t", "\x1b[31m\x7f");
    CLEANUP(mem_free) char *text = printed(v);
    CHECK_HAS(text, "\\u001B[31m");
    CHECK(!strchr(text, '\x1b'));
}

static void values_are_copied(void)
{
    CLEANUP(json_cleanup) struct json *from = NULL, *to = json_new_object();
    struct cairn_error err = { 0 };
    static const char text[] = "{\"a\":[1,2.5,\"x\"],\"b\":{\"c\":null},\"d\":true}";
    REQUIRE(!json_parse(text, strlen(text), &from, &err));
    for (struct json_member m = json_first(from); m.key; m = json_next(from, m))
        json_add_copy(to, m.key, m.value);
    json_add_copy(to, "e", NULL);
    json_free(from);
    from = NULL;
    CLEANUP(mem_free) char *copy = json_to_string(to);
    CHECK_STR(copy, "{\"a\":[1,2.5,\"x\"],\"b\":{\"c\":null},\"d\":true,\"e\":null}");
}

static void compact_text_is_one_line(void)
{
    CLEANUP(json_cleanup) struct json *v = json_new_object();
    json_add_int(v, "b", 1);
    json_add_int(json_add_array(v, "a"), NULL, 2);
    CLEANUP(mem_free) char *text = json_to_string(v);
    CHECK_STR(text, "{\"b\":1,\"a\":[2]}");
}

static void members_come_in_the_order_of_the_text(void)
{
    static const char text[] = "{\"zeta\": 1, \"alpha\": 2, \"mid\": 3}";
    static const char *const keys[] = { "zeta", "alpha", "mid" };
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error err = { 0 };
    REQUIRE(json_parse(text, strlen(text), &v, &err) == 0);
    size_t n = 0;
    for (struct json_member m = json_first(v); m.key; m = json_next(v, m)) {
        REQUIRE(n < ARRAY_LEN(keys));
        CHECK_STR(m.key, keys[n]);
        CHECK_INT(json_int(m.value, -1), n + 1);
        n++;
    }
    CHECK_INT(n, 3);
    CHECK(json_first(json_get(v, "zeta")).key == NULL);
    CHECK(json_first(NULL).key == NULL);
}

static void types_and_whole_numbers(void)
{
    static const char text[] = "{\"o\": {}, \"a\": [], \"n\": 9223372036854775807, \"m\": -1, \"r\": 1.0}";
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error err = { 0 };
    REQUIRE(json_parse(text, strlen(text), &v, &err) == 0);
    CHECK(json_is_object(json_get(v, "o")) && !json_is_array(json_get(v, "o")));
    CHECK(json_is_array(json_get(v, "a")) && !json_is_object(json_get(v, "a")));
    CHECK(!json_is_object(NULL) && !json_is_array(NULL));
    uint64_t n = 5;
    CHECK(json_to_u64(json_get(v, "n"), &n) && n == INT64_MAX);
    n = 5;
    CHECK(!json_to_u64(json_get(v, "m"), &n) && !json_to_u64(json_get(v, "r"), &n) && !json_to_u64(NULL, &n));
    CHECK_INT(n, 5);
}

static void parse_reads_every_type(void)
{
    static const char text[] =
        "{\"t\": \"x\", \"n\": 7, \"b\": true, \"z\": null, \"a\": [1, 2, 3], \"r\": 1.5}";
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error err = { 0 };
    REQUIRE(json_parse(text, strlen(text), &v, &err) == 0);
    CHECK_STR(json_text(json_get(v, "t")), "x");
    CHECK_INT(json_int(json_get(v, "n"), -1), 7);
    CHECK(json_bool(json_get(v, "b"), false));
    CHECK_INT(json_length(json_get(v, "a")), 3);
    CHECK_INT(json_int(json_at(json_get(v, "a"), 2), -1), 3);
}

/* A file that is not what it should be is asked the same questions. */
static void lookups_survive_the_wrong_type(void)
{
    static const char text[] = "{\"t\": \"x\", \"n\": 7, \"z\": null}";
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error err = { 0 };
    REQUIRE(json_parse(text, strlen(text), &v, &err) == 0);
    CHECK(json_get(v, "absent") == NULL);
    CHECK(json_get(NULL, "t") == NULL);
    CHECK(json_get(json_get(v, "t"), "t") == NULL);
    CHECK(json_text(json_get(v, "n")) == NULL);
    CHECK(json_text(NULL) == NULL);
    CHECK_INT(json_int(json_get(v, "t"), -5), -5);
    CHECK_INT(json_int(json_get(v, "z"), -5), -5);
    CHECK(json_bool(json_get(v, "n"), true));
    CHECK(!json_bool(NULL, false));
    CHECK_INT(json_length(json_get(v, "t")), 0);
    CHECK_INT(json_length(NULL), 0);
    CHECK(json_at(json_get(v, "t"), 0) == NULL);
    CHECK(json_at(NULL, 0) == NULL);
}

static void bad_text_is_an_error_with_its_line(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        { "", "line" },
        { "{", "line 1" },
        { "{\n\"a\": 1,\n\"a\": 2}", "line 3" }, /* the same key twice */
        { "{} x", "line 1" },
        { "{\n\n\"a\": nope}", "line 3" },
        { "{\"a\": \"\xff\"}", "line 1" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct json *v = NULL;
        struct cairn_error err = { 0 };
        CHECK_INT(json_parse(rows[i].text, strlen(rows[i].text), &v, &err), -1);
        CHECK(v == NULL);
        CHECK_INT(err.code, CAIRN_EFORMAT);
        CHECK_HAS(err.msg, rows[i].says);
    }
}

/* The text is not a string: the length counts, and there may be no terminator. */
static void parse_stops_at_the_length(void)
{
    static const char text[] = { '{', '}', 'g', 'a', 'r', 'b', 'a', 'g', 'e' };
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error err = { 0 };
    CHECK_INT(json_parse(text, 2, &v, &err), 0);
    CHECK(v != NULL);
}

static void cleanup_takes_null(void)
{
    struct json *none = NULL;
    json_cleanup(&none);
    json_free(NULL);
    CHECK(none == NULL);
}

static void tells_null_from_nothing(void)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error err;
    REQUIRE(!json_parse("{\"a\":null,\"b\":0}", 16, &v, &err));
    CHECK(json_is_null(json_get(v, "a")) && !json_is_null(json_get(v, "b")) &&
          !json_is_null(json_get(v, "c")));
}

static void a_finished_value_is_added(void)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    struct json *child = json_new_object();
    json_add_real(child, "third", 1.0 / 3);
    json_add(top, "child", child);
    json_add(json_add_array(top, "list"), NULL, json_new_object());
    CLEANUP(mem_free) char *text = json_to_short(top);
    CHECK_STR(text, "{\"child\":{\"third\":0.333333333},\"list\":[{}]}");
}

int main(void)
{
    RUN(prints_in_the_order_of_adding);
    RUN(integers_are_whole);
    RUN(damaged_text_stays_printable);
    RUN(control_characters_are_escaped);
    RUN(values_are_copied);
    RUN(compact_text_is_one_line);
    RUN(members_come_in_the_order_of_the_text);
    RUN(types_and_whole_numbers);
    RUN(parse_reads_every_type);
    RUN(lookups_survive_the_wrong_type);
    RUN(bad_text_is_an_error_with_its_line);
    RUN(parse_stops_at_the_length);
    RUN(cleanup_takes_null);
    RUN(tells_null_from_nothing);
    RUN(a_finished_value_is_added);
    return check_done();
}
