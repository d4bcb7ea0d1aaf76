/* SPDX-License-Identifier: Apache-2.0
 * Answers: JSON, problems, bytes, files, streams.
 *
 * Each of these sets the answer of a request, and replaces one that was set before.  Headers of security and
 * caching are added when it is sent (web/guard.h). */
#ifndef CAIRN_WEB_ANSWER_H
#define CAIRN_WEB_ANSWER_H

#include "base/error.h"
#include "base/json.h"
#include "web/request.h"

/* An object that begins with "schema":1, as all answers do. */
struct json *answer_new(void);
/* Takes the value. */
void answer_json(struct request *r, int status, struct json *v);
/* JSON that is text already; takes it if `owned` is not NULL. */
void answer_json_text(struct request *r, int status, const char *text, size_t n, void *owned);
/* application/problem+json: {"type","title","status","detail","hint"}.  The detail is a sentence as on the
 * command line: lower case, no full stop, names the object. */
void answer_problem(struct request *r, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The same with what to do about it, and a line of a text that was sent (0: none). */
void answer_problem_hint(struct request *r, int status, const char *detail, const char *hint, int line);
/* An error of the layers below: what was asked for is wrong (422), missing on this machine (424), or it failed
 * (500). */
void answer_error(struct request *r, const struct cairn_error *err);
/* Without a body: 204, 304. */
void answer_empty(struct request *r, int status);
/* Bytes of that media type; freed after they were sent if `owned` is not NULL. */
void answer_bytes(struct request *r, int status, const char *type, const char *bytes, size_t n, void *owned);
/* Part of an open file, which is closed afterwards. */
void answer_file(struct request *r, int status, const char *type, int fd, uint64_t offset, uint64_t length);
/* A stream: see struct answer. */
void answer_stream(struct request *r, const char *type, ssize_t (*read)(void *context, char *to, size_t n),
                   void (*close)(void *context), void *context);
/* Adds a header, or replaces one of that name; the value is copied.  Call it after one of the functions above. */
void answer_header(struct request *r, const char *name, const char *value);
/* Whether the answer has a header of that name. */
bool answer_has_header(const struct answer *a, const char *name);
void answer_release(struct answer *a);

/* "Not Found" */
const char *answer_reason(int status);

#endif
