/* SPDX-License-Identifier: Apache-2.0
 * The page itself, logging in and out. */
#include "base/clock.h"
#include "base/str.h"
#include "config.h"
#include "rules/reviewed.h"
#include "web/answer.h"
#include "web/api.h"
#include "web/assets.h"
#include "web/web.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

void api_index(struct request *r)
{
    assets_answer(r->web->assets, r, "index.html", 200);
}

void api_asset(struct request *r)
{
    const char *path = r->target.part[0];
    for (size_t i = 1; i < r->target.n_parts; i++)
        path = arena_printf(&r->arena, "%s/%s", path, r->target.part[i]);
    assets_answer(r->web->assets, r, path, 200);
}

/* ---- login ---- */

static void set_cookie(struct request *r, const char *value, const char *more)
{
    answer_header(r, "Set-Cookie",
                  arena_printf(&r->arena, "cairn_%d=%s; Path=/; HttpOnly; SameSite=Strict%s",
                               r->web->guard.port, value, more));
}

static void judge_code(struct request *r)
{
    struct web *w = r->web;
    struct cairn_error err = { 0 };
    char cookie[SESSION_SECRET + 1];
    const struct session *s =
        session_login(&w->sessions, request_query(r, "code"), clock_s(), (int64_t)time(NULL), cookie, &err);
    if (!s && err.msg[0]) {
        answer_error(r, &err);
    } else if (!s) {
        assets_answer(w->assets, r, "login.html", 403);
    } else {
        web_save(w);
        answer_empty(r, 303);
        answer_header(r, "Location", "./");
        set_cookie(r, cookie, "");
    }
    answer_header(r, "Cache-Control", "no-store");
}

static void judge_later(void *context)
{
    struct request *r = context;
    judge_code(r);
    request_wake(r);
}

void api_login(struct request *r)
{
    struct web *w = r->web;
    enum { LONGEST_WAIT_S = 30 };
    if (!request_query(r, "code")) {
        assets_answer(w->assets, r, "login.html", 200);
        return;
    }
    if (strcmp(r->method, "GET")) { /* HEAD must not use it up */
        answer_empty(r, 200);
        return;
    }
    double wait = session_wait(&w->sessions, clock_s());
    if (wait > LONGEST_WAIT_S) {
        answer_problem(r, 429, "too many wrong codes were tried");
        answer_header(r, "Retry-After", "30");
    } else if (wait > 0) {
        request_later(r);
        loop_after(w->loop, wait, judge_later, r);
    } else {
        judge_code(r);
    }
}

void api_logout(struct request *r)
{
    if (r->session) {
        session_end(&r->web->sessions, r->session);
        r->session = NULL;
        web_save(r->web);
    }
    answer_empty(r, 204);
    set_cookie(r, "", "; Max-Age=0");
}

void api_session(struct request *r)
{
    const struct web *w = r->web;
    struct json *v = answer_new();
    json_add_bool(v, "read_only", r->read_only);
    json_add_bool(v, "run_allowed", w->run_allowed && !r->read_only);
    json_add_bool(v, "upload_allowed", w->upload_allowed && !r->read_only);
    json_add_text(v, "csrf", r->session ? r->session->csrf : NULL);
    json_add_text(v, "version", CAIRN_VERSION);
    json_add_text(v, "knowledge_date", RULES_REVIEWED);
    folders_write(&w->folders, v);
    answer_json(r, 200, v);
}

/* For `cairn ui --url`, and a second `cairn ui`. */
void api_link(struct request *r)
{
    struct web *w = r->web;
    struct cairn_error err = { 0 };
    const struct json *body = r->body_n ? request_json(r) : NULL;
    const struct json *wish = json_get(body, "read_only");
    if (r->answer.kind != ANSWER_NONE)
        return;
    if (wish && json_bool(wish, true) != json_bool(wish, false)) {
        answer_problem(r, 400, "\"read_only\" must be true or false");
        return;
    }
    CLEANUP(str_release) struct str link = { 0 };
    if (web_link(w, json_bool(wish, false), &link, &err)) {
        answer_error(r, &err);
        return;
    }
    struct json *v = answer_new();
    json_add_text(v, "link", link.s);
    answer_json(r, 201, v);
}

extern const char web_openapi[]; /* openapi.json */

void api_openapi(struct request *r)
{
    answer_json_text(r, 200, web_openapi, strlen(web_openapi), NULL);
}

void api_events(struct request *r)
{
    events_subscribe(r->web->events, r, request_query(r, "topics"));
}
