/* SPDX-License-Identifier: Apache-2.0 */
#include "web/request.h"

#include "base/parse.h"
#include "base/str.h"
#include "web/answer.h"
#include "web/folder.h"
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

const char *request_header(const struct request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (!strcasecmp(r->headers[i].name, name))
            return r->headers[i].value;
    return NULL;
}

size_t request_header_count(const struct request *r, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_headers; i++)
        n += !strcasecmp(r->headers[i].name, name);
    return n;
}

const char *request_query(const struct request *r, const char *name)
{
    return target_value(&r->target, name);
}

bool request_query_int(struct request *r, const char *name, int64_t least, int64_t most, int64_t otherwise,
                       int64_t *out)
{
    const char *text = request_query(r, name);
    int64_t v;
    if (!text) {
        *out = otherwise;
        return true;
    }
    if (!cairn_parse_i64(text, &v) || v < least || v > most) {
        answer_problem(r, 400, "%s must be a whole number from %" PRId64 " to %" PRId64, name, least, most);
        return false;
    }
    *out = v;
    return true;
}

const struct json *request_json(struct request *r)
{
    struct cairn_error err = { 0 };
    struct json *v = NULL;
    if (r->json)
        return r->json;
    if (json_parse(r->body ? r->body : "", r->body_n, &v, &err)) {
        answer_problem(r, 400, "the body is not JSON: %s", err.msg);
        return NULL;
    }
    if (!json_is_object(v)) {
        json_free(v);
        answer_problem(r, 400, "the body must be a JSON object");
        return NULL;
    }
    return r->json = v;
}

void request_later(struct request *r)
{
    r->later = true;
}

void request_wake(struct request *r)
{
    if (r->wake)
        r->wake(r);
}

void request_cut(struct request *r)
{
    if (r->cut)
        r->cut(r);
}

void request_own(struct request *r, void *own, void (*release)(void *own))
{
    if (r->own_release)
        r->own_release(r->own);
    r->own = own;
    r->own_release = release;
}

void request_release(struct request *r)
{
    if (r->own_release)
        r->own_release(r->own);
    answer_release(&r->answer);
    if (r->folder)
        fd_close(&r->folder->fd);
    json_free(r->json);
    free(r->body);
    arena_release(&r->arena);
    free(r);
}
