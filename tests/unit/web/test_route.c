/* SPDX-License-Identifier: Apache-2.0 */
#include "web/route.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "check.h"
#include <strings.h>

static void nothing(struct request *r)
{
    (void)r;
}

static const struct route table[] = {
    { "GET", "/", nothing, 0, 0, NULL },
    { "GET", "/{asset*}", nothing, 0, 0, NULL },
    { "GET", "/api/v1/jobs", nothing, 0, 0, NULL },
    { "POST", "/api/v1/jobs", nothing, 0, 0, NULL },
    { "GET", "/api/v1/jobs/{uid}", nothing, 0, 0, NULL },
    { "POST", "/api/v1/jobs/{uid}/{verb}", nothing, 0, 0, NULL },
    { "GET", "/api/v1/files/{folder}/{path*}", nothing, 0, 0, NULL },
    { "GET", "/api/v1/queue/next", nothing, 0, 0, NULL },
    { "POST", "/api/v1/queue/{verb}", nothing, 0, 0, NULL },
};

struct found {
    int row; /* -1: none */
    const char *part[4];
    char allowed[64];
};

static struct found find(const char *method, const char *path, struct arena *a)
{
    struct found f = { .row = -1 };
    struct target t;
    if (target_parse(path, a, &t))
        return f;
    const struct route *r = route_find(table, ARRAY_LEN(table), method, &t, a, f.part, f.allowed);
    f.row = r ? (int)(r - table) : -1;
    return f;
}

static void rows_are_found(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CHECK_INT(find("GET", "/", &a).row, 0);
    CHECK_INT(find("HEAD", "/", &a).row, 0);
    CHECK_INT(find("GET", "/app.css", &a).row, 1);
    CHECK_STR(find("GET", "/pages/jobs.js", &a).part[0], "pages/jobs.js");
    CHECK_INT(find("GET", "/api/v1/jobs", &a).row, 2);
    CHECK_INT(find("POST", "/api/v1/jobs?x=y", &a).row, 3);
    CHECK_STR(find("GET", "/api/v1/jobs/abc", &a).part[0], "abc");
    struct found two = find("POST", "/api/v1/jobs/abc/stop", &a);
    CHECK_INT(two.row, 5);
    CHECK_STR(two.part[0], "abc");
    CHECK_STR(two.part[1], "stop");
    struct found file = find("GET", "/api/v1/files/data/a%20b/c.png", &a);
    CHECK_INT(file.row, 6);
    CHECK_STR(file.part[0], "data");
    CHECK_STR(file.part[1], "a b/c.png");
}

static void other_paths_and_methods_are_not(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    static const char *const none[] = { "/api",
                                        "/api/",
                                        "/api/v1",
                                        "/api/v1/",
                                        "/api/v1/job",
                                        "/api/v1/jobsx",
                                        "/api/v1/jobs/",
                                        "/api/v2/jobs",
                                        "/api/v1/jobs/a/b/c",
                                        "/api/v1/files",
                                        "/api/v1/files/data",
                                        "/api/v1/jobs//stop" };
    for (size_t i = 0; i < ARRAY_LEN(none); i++) {
        struct found f = find("GET", none[i], &a);
        if (f.row >= 0 || f.allowed[0])
            CHECK_FAIL_("%s: row %d, allowed %s", none[i], f.row, f.allowed);
    }
    struct found put = find("PUT", "/api/v1/jobs", &a);
    CHECK_INT(put.row, -1);
    CHECK_STR(put.allowed, "GET, POST");
    CHECK_STR(find("POST", "/app.css", &a).allowed, "GET");
    CHECK_INT(find("get", "/", &a).row, -1);
}

static void a_word_of_the_table_is_no_value(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CHECK_INT(find("GET", "/api/v1/queue/next", &a).row, 7);
    CHECK_INT(find("POST", "/api/v1/queue/go", &a).row, 8);
    struct found f = find("POST", "/api/v1/queue/next", &a);
    CHECK_INT(f.row, -1);
    CHECK_STR(f.allowed, "GET");
}

/* ---- the table of the program ---- */

static void no_read_changes_anything(void)
{
    for (size_t i = 0; i < n_routes; i++) {
        const struct route *r = &routes[i];
        bool reads = !strcmp(r->method, "GET");
        CHECK(r->run && r->path[0] == '/');
        if (reads && (r->flags & (ROUTE_CHANGES | ROUTE_RUNS | ROUTE_UPLOADS) || r->body || r->sink))
            CHECK_FAIL_("GET %s changes something", r->path);
        if (!reads && r->flags & ROUTE_OPEN)
            CHECK_FAIL_("%s %s needs no session", r->method, r->path);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(routes[k].path, r->path) && !strcmp(routes[k].method, r->method))
                CHECK_FAIL_("%s %s is there twice", r->method, r->path);
    }
}

/* Questions are sent with a body and change nothing; every other request that is no GET must be refused to those who
 * may only read. */
static void all_else_is_a_change(void)
{
    static const char *const asks[] = { "/api/v1/logout", "/api/v1/link",     "/api/v1/check",
                                        "/api/v1/env",    "/api/v1/diagnose", "/api/v1/tensor/check" };
    for (size_t i = 0; i < n_routes; i++) {
        bool question = !strcmp(routes[i].method, "GET");
        for (size_t k = 0; k < ARRAY_LEN(asks); k++)
            question = question || !strcmp(routes[i].path, asks[k]);
        if (question == !!(routes[i].flags & ROUTE_CHANGES))
            CHECK_FAIL_("%s %s", routes[i].method, routes[i].path);
    }
}

/* As openapi.json writes it: {path*} is {path}. */
static void api_path(const char *path, char *out)
{
    for (; *path; path++)
        if (*path != '*')
            *out++ = *path;
    *out = '\0';
}

static bool is_described(const struct json *api, const struct route *r)
{
    char path[128], method[16];
    api_path(r->path, path);
    snprintf(method, sizeof(method), "%s", r->method);
    for (char *c = method; *c; c++)
        *c |= 0x20;
    return json_get(json_get(json_get(api, "paths"), path), method) != NULL;
}

static bool is_route(const char *path, const char *method)
{
    char own[128];
    for (size_t i = 0; i < n_routes; i++) {
        api_path(routes[i].path, own);
        if (!strcmp(own, path) && !strcasecmp(routes[i].method, method))
            return true;
    }
    return false;
}

static void openapi_names_the_same(void)
{
    CLEANUP(json_cleanup) struct json *api = NULL;
    struct cairn_error err = { 0 };
    REQUIRE(!json_read_object(check_data("../../src/web/openapi.json"), &api, &err));
    for (size_t i = 0; i < n_routes; i++)
        if (str_starts(routes[i].path, "/api/") && !is_described(api, &routes[i]))
            CHECK_FAIL_("openapi.json lacks %s %s", routes[i].method, routes[i].path);
    const struct json *paths = json_get(api, "paths");
    size_t n = 0;
    for (struct json_member p = json_first(paths); p.key; p = json_next(paths, p))
        for (struct json_member m = json_first(p.value); m.key; m = json_next(p.value, m)) {
            if (str_eq(m.key, "parameters")) /* of all its methods */
                continue;
            n++;
            if (!is_route(p.key, m.key))
                CHECK_FAIL_("there is no route for %s %s", m.key, p.key);
        }
    CHECK(n > 15);
}

int main(void)
{
    RUN(rows_are_found);
    RUN(other_paths_and_methods_are_not);
    RUN(a_word_of_the_table_is_no_value);
    RUN(no_read_changes_anything);
    RUN(all_else_is_a_change);
    RUN(openapi_names_the_same);
    return check_done();
}
