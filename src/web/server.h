/* SPDX-License-Identifier: Apache-2.0
 * HTTP: connections, limits, reading requests and sending answers.  The only module that uses libmicrohttpd.
 *
 * One thread: the library's descriptors are part of the loop. */
#ifndef CAIRN_WEB_SERVER_H
#define CAIRN_WEB_SERVER_H

#include "base/error.h"
#include "web/loop.h"
#include "web/request.h"

enum { SERVER_HEADER_BYTES = 16 << 10 };

struct server_limits {
    size_t connections;
    unsigned header_s; /* for the headers of a request */
    unsigned idle_s;   /* without a byte */
    unsigned body_s;   /* for a body that is kept in memory */
};
extern const struct server_limits server_usual_limits; /* 256 connections, 30, 60 and 120 s */

/* What is done with a request. */
struct server_app {
    void (*begin)(void *context,
                  struct request *r); /* its headers are here: refuses it, or says how to read the body */
    void (*run)(void *context, struct request *r);    /* all of it is here */
    void (*finish)(void *context, struct request *r); /* its answer is about to be sent */
    void *context;
};

struct server;

/* Takes the listening sockets (at most 4), also on failure. */
int server_open(struct loop *l, const int *listeners, size_t n, const struct server_limits *limits,
                const struct server_app *app, struct server **out, struct cairn_error *err);
/* Ends all connections; accepts NULL. */
void server_close(struct server *s);
size_t server_connections(const struct server *s);

#endif
