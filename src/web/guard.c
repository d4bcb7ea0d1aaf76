/* SPDX-License-Identifier: Apache-2.0 */
#include "web/guard.h"

#include "base/cleanup.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

const struct guard_header guard_headers[] = {
    { "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self'; "
      "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'" },
    { "X-Content-Type-Options", "nosniff" },
    { "Referrer-Policy", "no-referrer" },
    { "Cross-Origin-Opener-Policy", "same-origin" },
    { "Cross-Origin-Resource-Policy", "same-origin" },
    { NULL, NULL },
};

static bool is_text(const char *s, size_t n, const char *text)
{
    return strlen(text) == n && !strncasecmp(s, text, n);
}

/* One or more labels of letters, digits and hyphens before ".localhost". */
static bool is_below_localhost(const char *s, size_t n)
{
    static const char end[] = ".localhost";
    size_t tail = sizeof(end) - 1, label = 0;
    if (n <= tail || strncasecmp(s + n - tail, end, tail))
        return false;
    for (size_t i = 0; i < n - tail; i++) {
        char c = s[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        if (!letter && (c != '.' || !label))
            return false;
        label = c == '.' ? 0 : label + 1;
    }
    return label > 0;
}

static bool is_local_name(const char *s, size_t n)
{
    return is_text(s, n, "localhost") || is_text(s, n, "127.0.0.1") || is_text(s, n, "[::1]") ||
           is_below_localhost(s, n);
}

/* The length of the name before the port; *port: ":80", or "". */
static size_t name_length(const char *host, const char **port)
{
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
    const char *colon = strchr(end ? end : host, ':');
    *port = colon ? colon : host + strlen(host);
    return (size_t)(*port - host);
}

static bool is_our_port(const struct guard *g, const char *port)
{
    char ours[16];
    snprintf(ours, sizeof(ours), ":%d", g->port);
    return !strcmp(port, ours) || (!*port && g->port == 80);
}

static bool is_given_host(const struct guard *g, const char *host)
{
    const char *port;
    size_t n = name_length(host, &port);
    for (size_t i = 0; i < g->n_hosts; i++) {
        if (!strcasecmp(host, g->hosts[i]))
            return true;
        if (is_text(host, n, g->hosts[i]) && is_our_port(g, port))
            return true;
    }
    return false;
}

bool guard_host_is_ours(const struct guard *g, const char *host)
{
    const char *port;
    size_t n = name_length(host, &port);
    return (is_local_name(host, n) && is_our_port(g, port)) || is_given_host(g, host);
}

bool guard_origin_is_ours(const struct guard *g, const char *origin, const char *host)
{
    static const char plain[] = "http://", safe[] = "https://";
    size_t n = sizeof(plain) - 1;
    if (!strncasecmp(origin, safe, sizeof(safe) - 1)) { /* a proxy before us has the certificate */
        if (!is_given_host(g, host))
            return false;
        n = sizeof(safe) - 1;
    } else if (strncasecmp(origin, plain, n)) {
        return false;
    }
    return guard_host_is_ours(g, host) && !strcasecmp(origin + n, host);
}

bool guard_type_is_allowed(const char *content_type)
{
    static const char *const allowed[] = { "application/json", "application/octet-stream" };
    if (!content_type)
        return false;
    size_t n = strcspn(content_type, "; \t");
    const char *after = content_type + n + strspn(content_type + n, " \t");
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (is_text(content_type, n, allowed[i]))
            return !*after || *after == ';';
    return false;
}

bool guard_secret_is(const char *given, size_t n, const char *secret)
{
    size_t length = strlen(secret);
    unsigned char differs = 0;
    if (n != length || !length)
        return false;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned char)(given[i] ^ secret[i]);
    return !differs;
}

int guard_change(const struct guard *g, const struct guard_change *c, const char **why)
{
    if (c->fetch_site && strcmp(c->fetch_site, "same-origin")) {
        *why = "the request comes from another site";
        return 403;
    }
    if (c->origin && !guard_origin_is_ours(g, c->origin, c->host)) {
        *why = "the request comes from a page of another origin";
        return 403;
    }
    if (!c->csrf || !guard_secret_is(c->csrf, strlen(c->csrf), c->session_csrf)) {
        *why = "the header X-Cairn-CSRF is missing or wrong; GET api/v1/session returns its value";
        return 403;
    }
    if (!guard_type_is_allowed(c->content_type)) {
        *why = "the Content-Type must be application/json or application/octet-stream";
        return 415;
    }
    return 0;
}
