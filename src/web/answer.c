/* SPDX-License-Identifier: Apache-2.0 */
#include "web/answer.h"

#include "base/str.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *answer_reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        { 200, "OK" },
        { 201, "Created" },
        { 202, "Accepted" },
        { 204, "No Content" },
        { 206, "Partial Content" },
        { 303, "See Other" },
        { 304, "Not Modified" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 411, "Length Required" },
        { 412, "Precondition Failed" },
        { 413, "Content Too Large" },
        { 415, "Unsupported Media Type" },
        { 416, "Range Not Satisfiable" },
        { 421, "Misdirected Request" },
        { 422, "Unprocessable Content" },
        { 424, "Failed Dependency" },
        { 428, "Precondition Required" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
        { 507, "Insufficient Storage" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status)
            return rows[i].text;
    return "Error";
}

void answer_release(struct answer *a)
{
    free(a->owned);
    if (a->kind == ANSWER_FILE && a->fd >= 0)
        close(a->fd);
    if (a->kind == ANSWER_STREAM && a->close)
        a->close(a->context);
    *a = (struct answer){ 0 };
}

static struct answer *begin(struct request *r, enum answer_kind kind, int status, const char *type)
{
    answer_release(&r->answer);
    r->answer.kind = kind;
    r->answer.status = status;
    if (type)
        answer_header(r, "Content-Type", type);
    return &r->answer;
}

void answer_bytes(struct request *r, int status, const char *type, const char *bytes, size_t n, void *owned)
{
    struct answer *a = begin(r, ANSWER_BYTES, status, type);
    a->bytes = bytes;
    a->n = n;
    a->owned = owned;
}

void answer_empty(struct request *r, int status)
{
    answer_bytes(r, status, NULL, "", 0, NULL);
}

void answer_file(struct request *r, int status, const char *type, int fd, uint64_t offset, uint64_t length)
{
    struct answer *a = begin(r, ANSWER_FILE, status, type);
    a->fd = fd;
    a->offset = offset;
    a->length = length;
}

void answer_stream(struct request *r, const char *type, ssize_t (*read)(void *context, char *to, size_t n),
                   void (*close_stream)(void *context), void *context)
{
    struct answer *a = begin(r, ANSWER_STREAM, 200, type);
    a->read = read;
    a->close = close_stream;
    a->context = context;
}

void answer_header(struct request *r, const char *name, const char *value)
{
    struct answer *a = &r->answer;
    struct header *h = NULL;
    for (size_t i = 0; i < a->n_headers && !h; i++)
        h = strcasecmp(a->headers[i].name, name) ? NULL : &a->headers[i];
    h = h ? h : ARENA_PUSH(&r->arena, a->headers, a->n_headers);
    h->name = name;
    h->value = arena_strdup(&r->arena, value);
}

bool answer_has_header(const struct answer *a, const char *name)
{
    for (size_t i = 0; i < a->n_headers; i++)
        if (!strcasecmp(a->headers[i].name, name))
            return true;
    return false;
}

/* ---- JSON ---- */

struct json *answer_new(void)
{
    struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    return v;
}

void answer_json_text(struct request *r, int status, const char *text, size_t n, void *owned)
{
    answer_bytes(r, status, "application/json", text, n, owned);
}

void answer_json(struct request *r, int status, struct json *v)
{
    char *text = json_to_short(v);
    json_free(v);
    answer_json_text(r, status, text, strlen(text), text);
}

void answer_problem_hint(struct request *r, int status, const char *detail, const char *hint, int line)
{
    struct json *v = json_new_object();
    json_add_text(v, "type", "about:blank");
    json_add_text(v, "title", answer_reason(status));
    json_add_int(v, "status", status);
    json_add_text(v, "detail", detail);
    json_add_text(v, "hint", hint && *hint ? hint : NULL);
    if (line > 0)
        json_add_int(v, "line", line);
    char *text = json_to_short(v);
    json_free(v);
    answer_bytes(r, status, "application/problem+json", text, strlen(text), text);
}

void answer_problem(struct request *r, int status, const char *fmt, ...)
{
    char detail[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);
    answer_problem_hint(r, status, detail, NULL, 0);
}

void answer_error(struct request *r, const struct cairn_error *err)
{
    int status = err->code == CAIRN_EUSAGE || err->code == CAIRN_EFORMAT ? 422
                 : err->code == CAIRN_ELACK                              ? 424
                                                                         : 500;
    answer_problem_hint(r, status, err->msg, err->hint, 0);
}
