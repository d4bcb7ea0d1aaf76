/* SPDX-License-Identifier: Apache-2.0
 * The one table of routes.
 *
 * To add an endpoint: write `void api_x(struct request *r)` (web/request.h, web/answer.h), declare it in
 * web/api.h, add a row to the table in route.c, and describe it in openapi.json; a test compares the two.
 * What a row allows is decided by its flags, before the handler is called:
 *
 *     { "GET", "/api/v1/jobs", api_jobs_list, 0, 0 },
 *     { "POST", "/api/v1/jobs", api_jobs_add, ROUTE_CHANGES, ROUTE_JSON },
 *     { "PATCH", "/api/v1/jobs/{uid}", api_jobs_edit, ROUTE_CHANGES, ROUTE_JSON },
 *
 * r->part[i] is the text of the i-th {…}; {path*} at the end takes all that follows, slashes included. */
#ifndef CAIRN_WEB_ROUTE_H
#define CAIRN_WEB_ROUTE_H

#include "web/request.h"

enum route_flags {
    ROUTE_OPEN = 1 << 0, /* needs no session */
    ROUTE_CHANGES =
        1 << 1, /* 403 for a read-only session, or with --read-only.  Never on GET.  Also for what reads
                             * files that the client names */
    ROUTE_RUNS = 1 << 2, /* runs a command that the client names: 403 where that is not allowed */
    ROUTE_UPLOADS =
        1 << 3,           /* writes files that the client sends: 403 on another address without --allow-run */
    ROUTE_TOKEN = 1 << 4, /* only with the token of the command line */
    ROUTE_QUEUE = 1 << 5, /* writes the database of jobs: its handler runs on a thread (web/jobs.h) */
};

/* Most bytes of a body.  0: the request must have none. */
enum route_body { ROUTE_NO_BODY = 0, ROUTE_JSON = 1 << 20, ROUTE_LOG = 32 << 20 };

struct route {
    const char *method;
    const char *path;
    void (*run)(struct request *r);
    unsigned flags;
    size_t body;                  /* enum route_body */
    const struct body_sink *sink; /* takes the body in pieces instead; `body` does not count then */
};

extern const struct route routes[];
extern const size_t n_routes;

/* Fills *part.  NULL: there is no such path; *allowed (room for 64 bytes) is then "" or, if the path exists
 * with other methods, their list: "GET, PUT". */
const struct route *route_find(const struct route *table, size_t n, const char *method,
                               const struct target *t, struct arena *a, const char *part[4],
                               char allowed[64]);

#endif
