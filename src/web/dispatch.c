/* SPDX-License-Identifier: Apache-2.0
 * From a request to its handler: the guard, the session, the route. */
#include "base/str.h"
#include "web/answer.h"
#include "web/assets.h"
#include "web/cookie.h"
#include "web/jobs.h"
#include "web/route.h"
#include "web/web.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static bool is_api(const struct request *r)
{
    return r->target.n_parts && !strcmp(r->target.part[0], "api");
}

/* ---- who asks ---- */

static bool has_token(const struct web *w, const struct request *r)
{
    const char *value = request_header(r, "Authorization");
    return value && !strncmp(value, "Bearer ", 7) && guard_secret_is(value + 7, strlen(value + 7), w->token);
}

static const struct session *session_of(const struct web *w, const struct request *r)
{
    char name[32];
    size_t n;
    snprintf(name, sizeof(name), "cairn_%d", w->guard.port);
    for (size_t i = 0; i < r->n_headers; i++) {
        const char *value =
            !strcasecmp(r->headers[i].name, "Cookie") ? cookie_find(r->headers[i].value, name, &n) : NULL;
        if (value)
            return session_find(&w->sessions, value, n, (int64_t)time(NULL));
    }
    return NULL;
}

/* A browser gets a page that says how to get a link. */
static void ask_for_login(struct request *r)
{
    if (!is_api(r) && !strcmp(r->method, "GET")) {
        assets_answer(r->web->assets, r, "login.html", 401);
    } else {
        answer_problem_hint(r, 401, "this needs a session", "run cairn ui --url, and open the link it prints",
                            0);
    }
    answer_header(r, "WWW-Authenticate", "Bearer");
}

/* ---- the checks, in their order; each answers and returns false if it refuses ---- */

static bool host_is_right(struct web *w, struct request *r)
{
    const char *host = request_header(r, "Host");
    if (!host || !*host || request_header_count(r, "Host") != 1) {
        answer_problem(r, 400, "the request needs one Host header");
        return false;
    }
    if (guard_host_is_ours(&w->guard, host))
        return true;
    answer_problem_hint(r, 421, "this server does not answer under the name in the Host header",
                        "start cairn ui with --host NAME to allow another name", 0);
    return false;
}

static bool is_well_formed(struct request *r)
{
    const char *why = target_parse(r->raw, &r->arena, &r->target);
    if (why)
        answer_problem(r, 400, "%s", why);
    else if (r->header_bytes > SERVER_HEADER_BYTES)
        answer_problem(r, 431, "the headers are larger than %d bytes", SERVER_HEADER_BYTES);
    else if (request_header_count(r, "Content-Length") > 1 ||
             (request_header(r, "Content-Length") && r->is_chunked) || r->announced == UINT64_MAX)
        answer_problem(r, 400, "the length of the body is not clear");
    return r->answer.kind == ANSWER_NONE;
}

static bool is_allowed(struct web *w, struct request *r)
{
    r->is_token = has_token(w, r);
    r->session = r->is_token ? NULL : session_of(w, r);
    r->read_only = w->read_only || (r->session && r->session->read_only);
    if (r->is_token || r->session || (r->route && r->route->flags & ROUTE_OPEN))
        return true;
    ask_for_login(r);
    return false;
}

static bool route_exists(struct request *r, const char *allowed)
{
    if (r->route)
        return true;
    if (!*allowed) {
        answer_problem(r, 404, "there is nothing at this path");
        return false;
    }
    answer_problem(r, 405, "this path takes only %s", allowed);
    answer_header(r, "Allow", allowed);
    return false;
}

static bool is_reading(const struct request *r)
{
    return !strcmp(r->method, "GET") || !strcmp(r->method, "HEAD");
}

static bool comes_from_us(struct web *w, struct request *r)
{
    if (is_reading(r) || r->is_token)
        return true;
    const char *why = NULL;
    struct guard_change c = {
        .host = request_header(r, "Host"),
        .origin = request_header(r, "Origin"),
        .fetch_site = request_header(r, "Sec-Fetch-Site"),
        .content_type = request_header(r, "Content-Type"),
        .csrf = request_header(r, "X-Cairn-CSRF"),
        .session_csrf = r->session ? r->session->csrf : "",
    };
    int status = guard_change(&w->guard, &c, &why);
    if (status)
        answer_problem(r, status, "%s", why);
    return !status;
}

static bool flags_allow(const struct web *w, struct request *r)
{
    unsigned flags = r->route->flags;
    if (flags & ROUTE_TOKEN && !r->is_token)
        answer_problem(r, 403, "only a program with the token of the command line may do this");
    else if (flags & ROUTE_CHANGES && r->read_only)
        answer_problem(r, 403, "this session is read-only");
    else if (flags & ROUTE_RUNS && !w->run_allowed)
        answer_problem(r, 403, "this server runs no commands");
    else if (flags & ROUTE_UPLOADS && !w->upload_allowed)
        answer_problem(r, 403, "this server takes no files");
    return r->answer.kind == ANSWER_NONE;
}

static bool body_is_right(struct request *r)
{
    const struct route *route = r->route;
    r->body_most = route->body;
    r->sink = route->sink;
    if (r->sink)
        return !r->sink->begin(r);
    if (!r->is_chunked && r->announced > route->body)
        answer_problem(r, 413, "the body is larger than %zu bytes", route->body);
    return r->answer.kind == ANSWER_NONE;
}

static void begin(void *context, struct request *r)
{
    struct web *w = context;
    char allowed[64];
    r->web = w;
    if (!host_is_right(w, r) || !is_well_formed(r))
        return;
    r->route = route_find(routes, n_routes, r->method, &r->target, &r->arena, r->part, allowed);
    if (is_allowed(w, r) && route_exists(r, allowed) && comes_from_us(w, r) && flags_allow(w, r))
        body_is_right(r);
}

static void run(void *context, struct request *r)
{
    (void)context;
    if (r->route->flags & ROUTE_QUEUE)
        jobs_write(r, r->route->run);
    else
        r->route->run(r);
}

static void finish(void *context, struct request *r)
{
    (void)context;
    for (const struct guard_header *h = guard_headers; h->name; h++)
        answer_header(r, h->name, h->value);
    if (!answer_has_header(&r->answer, "Cache-Control"))
        answer_header(r, "Cache-Control", "no-store");
}

const struct server_app web_app = { .begin = begin, .run = run, .finish = finish };
