/* SPDX-License-Identifier: Apache-2.0
 * Who may ask what: the checks before any handler, as functions of texts.
 *
 * Host: a page of another site whose name was pointed at this machine (DNS rebinding) sends its own name, so
 * the names under which the server may be asked are a list, compared as a whole.  Changes: another page, or
 * another server on this machine, to whom the browser sends our cookie as well, can neither read the CSRF token
 * nor fake the headers of the browser. */
#ifndef CAIRN_WEB_GUARD_H
#define CAIRN_WEB_GUARD_H

#include <stdbool.h>
#include <stddef.h>

struct guard {
    int port;
    const char *const *hosts; /* of --host: NAME, or NAME:PORT */
    size_t n_hosts;
};

/* localhost, *.localhost, 127.0.0.1 and [::1] with our port; the hosts of --host alone, with our port, or as given. */
bool guard_host_is_ours(const struct guard *g, const char *host);
/* Whether a page of this origin came from us, under the name that the request was sent to. */
bool guard_origin_is_ours(const struct guard *g, const char *origin, const char *host);

/* The headers of a request that may change something; NULL: it has none such. */
struct guard_change {
    const char *host, *origin, *fetch_site, *content_type, *csrf;
    const char *session_csrf; /* what csrf must be */
};
/* 0: allowed; else the status, and *why. */
int guard_change(const struct guard *g, const struct guard_change *c, const char **why);
/* application/json and application/octet-stream, with any parameters. */
bool guard_type_is_allowed(const char *content_type);

/* Compares two secrets in a time that depends only on their lengths. */
bool guard_secret_is(const char *given, size_t n, const char *secret);

/* Headers of every answer; NULL at the end. */
struct guard_header {
    const char *name, *value;
};
extern const struct guard_header guard_headers[];

#endif
