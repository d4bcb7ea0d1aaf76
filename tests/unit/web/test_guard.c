/* SPDX-License-Identifier: Apache-2.0 */
#include "web/guard.h"

#include "base/cleanup.h"
#include "check.h"
#include "guard_rows.h"

static const char *const given[] = { "box.lan", "proxy.example:8443", "10.0.0.5" };
static const struct guard guard = { .port = 22476, .hosts = given, .n_hosts = ARRAY_LEN(given) };

static void hosts_are_compared_whole(void)
{
    CHECK(ARRAY_LEN(host_rows) + ARRAY_LEN(origin_rows) >= 200);
    for (size_t i = 0; i < ARRAY_LEN(host_rows); i++)
        if (guard_host_is_ours(&guard, host_rows[i].host) != host_rows[i].ours)
            CHECK_FAIL_("\"%s\" is%s ours", host_rows[i].host, host_rows[i].ours ? " not" : "");
}

static void origins_are_that_of_the_host(void)
{
    for (size_t i = 0; i < ARRAY_LEN(origin_rows); i++)
        if (guard_origin_is_ours(&guard, origin_rows[i].origin, origin_rows[i].host) != origin_rows[i].ours)
            CHECK_FAIL_("\"%s\" at \"%s\" is%s ours", origin_rows[i].origin, origin_rows[i].host,
                        origin_rows[i].ours ? " not" : "");
}

static void port_80_is_not_written(void)
{
    const struct guard g = { .port = 80 };
    CHECK(guard_host_is_ours(&g, "localhost"));
    CHECK(guard_host_is_ours(&g, "[::1]"));
    CHECK(guard_host_is_ours(&g, "127.0.0.1:80"));
    CHECK(!guard_host_is_ours(&g, "localhost:22476"));
    CHECK(!guard_host_is_ours(&g, "evil.example"));
}

static void types_are_two(void)
{
    static const struct {
        const char *type;
        bool allowed;
    } rows[] = {
        { "application/json", true },
        { "Application/JSON", true },
        { "application/json; charset=utf-8", true },
        { "application/json ; charset=utf-8", true },
        { "application/json;charset=utf-8", true },
        { "application/octet-stream", true },
        { "application/jsonx", false },
        { "application/json x", false },
        { "application/json, text/plain", false },
        { "application/problem+json", false },
        { "text/plain", false },
        { "text/plain; application/json", false },
        { "application/x-www-form-urlencoded", false },
        { "multipart/form-data; boundary=x", false },
        { " application/json", false },
        { "", false },
        { NULL, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (guard_type_is_allowed(rows[i].type) != rows[i].allowed)
            CHECK_FAIL_("\"%s\"", rows[i].type ? rows[i].type : "(none)");
}

static int verdict(struct guard_change c)
{
    const char *why = NULL;
    int status = guard_change(&guard, &c, &why);
    CHECK(!status == !why);
    return status;
}

static void changes_need_every_sign(void)
{
    const struct guard_change right = { .host = "localhost:22476",
                                        .origin = "http://localhost:22476",
                                        .fetch_site = "same-origin",
                                        .content_type = "application/json",
                                        .csrf = "0123456789abcdef",
                                        .session_csrf = "0123456789abcdef" };
    struct guard_change c;
    CHECK_INT(verdict(right), 0);
    c = right, c.origin = NULL, c.fetch_site = NULL;
    CHECK_INT(verdict(c), 0);
    c = right, c.origin = "null";
    CHECK_INT(verdict(c), 403);
    c = right, c.fetch_site = "same-site";
    CHECK_INT(verdict(c), 403);
    c = right, c.csrf = NULL;
    CHECK_INT(verdict(c), 403);
    c = right, c.csrf = "0123456789abcdee";
    CHECK_INT(verdict(c), 403);
    c = right, c.content_type = "text/plain";
    CHECK_INT(verdict(c), 415);
    c = right, c.csrf = "", c.session_csrf = ""; /* no session, no token */
    CHECK_INT(verdict(c), 403);
}

static void secrets_are_compared_whole(void)
{
    CHECK(guard_secret_is("abc", 3, "abc"));
    CHECK(!guard_secret_is("abc", 2, "abc"));
    CHECK(!guard_secret_is("abcd", 4, "abc"));
    CHECK(!guard_secret_is("abd", 3, "abc"));
    CHECK(!guard_secret_is("", 0, ""));
    CHECK(!guard_secret_is("ab\0", 3, "abc"));
}

int main(void)
{
    RUN(hosts_are_compared_whole);
    RUN(origins_are_that_of_the_host);
    RUN(port_80_is_not_written);
    RUN(types_are_two);
    RUN(changes_need_every_sign);
    RUN(secrets_are_compared_whole);
    return check_done();
}
