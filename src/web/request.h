/* SPDX-License-Identifier: Apache-2.0
 * One request and its answer.
 *
 * A handler (web/route.h) gets the request when it is complete and allowed, and either sets its answer with
 * web/answer.h, or calls request_later and sets it when the work is done, followed by request_wake.  Everything
 * in `arena` lives as long as the request.  One thread. */
#ifndef CAIRN_WEB_REQUEST_H
#define CAIRN_WEB_REQUEST_H

#include "base/arena.h"
#include "base/json.h"
#include "web/target.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct change;
struct folder;
struct request;
struct web;
struct route;
struct session;

struct header {
    const char *name, *value;
};

enum answer_kind { ANSWER_NONE, ANSWER_BYTES, ANSWER_FILE, ANSWER_STREAM };

/* What answer.h fills and server.c sends. */
struct answer {
    enum answer_kind kind;
    int status;
    struct header *headers;
    size_t n_headers;
    const char *bytes; /* ANSWER_BYTES */
    size_t n;
    void *owned; /* freed after it was sent; may be NULL */
    int fd;      /* ANSWER_FILE: closed after it was sent */
    uint64_t offset, length;
    /* ANSWER_STREAM.  read: copies at most n bytes; 0: nothing now, request_wake asks again; -1: it is over. */
    ssize_t (*read)(void *context, char *to, size_t n);
    void (*close)(void *context);
    void *context;
};

/* Takes the body of an upload in pieces.  Each returns 0, or -1 after it set an answer that refuses. */
struct body_sink {
    int (*begin)(struct request *r); /* the headers are here */
    int (*take)(struct request *r, const char *bytes, size_t n);
};

struct request {
    struct web *web;
    struct arena arena;
    const char *method; /* as sent; HEAD is answered as GET, without the body */
    const char *raw;    /* the target as sent */
    struct target target;
    struct header *headers;
    size_t n_headers;
    size_t header_bytes;
    bool has_body;      /* the headers announce one */
    bool is_chunked;    /* its length is not known */
    uint64_t announced; /* else its length */
    char *body;         /* terminated by a NUL that does not count; NULL: none */
    size_t body_n, body_room;
    size_t body_most;             /* a longer one is refused with 413 */
    size_t swallowed;             /* bytes that came after it was refused */
    const struct body_sink *sink; /* instead of `body` */
    struct json *json;            /* the body, once request_json was called */

    const struct route *route;     /* NULL: refused before one was looked for */
    const char *part[4];           /* the texts of {…} in the path of the route, in their order */
    const struct session *session; /* who asks; NULL: nobody, or the token of the command line */
    bool is_token;                 /* it came with the token */
    bool read_only;                /* it may change nothing */

    struct change *change; /* of jobs.c, while the handler runs on a thread; NULL: it runs in the loop */
    struct folder *folder; /* of a job (files.c), closed with the request; NULL: none */
    struct answer answer;
    bool later;     /* the answer comes with request_wake */
    bool suspended; /* by server.c */
    void *connection;
    void (*wake)(struct request *r); /* by server.c, and so is cut */
    void (*cut)(struct request *r);
    /* State of the handler, released with the request: also when the client went away.  See request_own. */
    void *own;
    void (*own_release)(void *own);
};

/* The value of a header, its name in any case; NULL: the request has none.  Of several the first. */
const char *request_header(const struct request *r, const char *name);
/* How many headers of that name there are. */
size_t request_header_count(const struct request *r, const char *name);
/* A value of the query; NULL: there is none. */
const char *request_query(const struct request *r, const char *name);
/* The same as a whole number; false after it answered 400 for anything that is none or out of range. */
bool request_query_int(struct request *r, const char *name, int64_t least, int64_t most, int64_t otherwise,
                       int64_t *out);
/* The body as a JSON object, freed with the request; NULL after it answered 400. */
const struct json *request_json(struct request *r);

/* The handler has not answered yet; request_wake sends the answer once it is set, and wakes a stream that
 * had nothing to send. */
void request_later(struct request *r);
void request_wake(struct request *r);
/* Ends the connection without sending what is left. */
void request_cut(struct request *r);
/* Gives the request something to release when it ends. One such thing per request. */
void request_own(struct request *r, void *own, void (*release)(void *own));
/* For server.c: frees all that the request has. */
void request_release(struct request *r);

#endif
