/* SPDX-License-Identifier: Apache-2.0 */
#include "web/link.h"

#include "base/json.h"
#include "base/str.h"
#include "os/listen.h"
#include "web/state.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 5000 };

static int connect_to(const struct state_other *other)
{
    return str_starts(other->listen, "unix:") ? os_connect_unix(other->listen + 5, LIMIT_MS)
                                              : os_connect_tcp(other->listen, other->port, LIMIT_MS);
}

/* One request and its whole answer. */
static int exchange(int fd, const char *request, struct str *answer)
{
    char buf[4096];
    for (size_t at = 0, n = strlen(request); at < n;) {
        ssize_t sent = write(fd, request + at, n - at);
        if (sent < 0)
            return -1;
        at += (size_t)sent;
    }
    for (;;) {
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n <= 0)
            return n < 0 ? -1 : 0;
        str_addn(answer, buf, (size_t)n);
        if (answer->len > 1 << 16)
            return 0;
    }
}

static const char *make_request(const struct state_other *other, const char *token, bool read_only,
                                struct arena *a)
{
    const char *body = read_only ? "{\"read_only\":true}" : "{\"read_only\":false}";
    return arena_printf(
        a,
        "POST /api/v1/link HTTP/1.1\r\nHost: localhost:%d\r\nAuthorization: Bearer %s\r\n"
        "Content-Type: application/json\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
        other->port, token, strlen(body), body);
}

static const char *read_link(const struct str *answer, struct arena *a)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored = { 0 };
    const char *body = answer->s ? strstr(answer->s, "\r\n\r\n") : NULL;
    if (!body || !str_starts(answer->s, "HTTP/1.1 201 ") ||
        json_parse(body + 4, strlen(body + 4), &v, &ignored))
        return NULL;
    return arena_strdup(a, json_text(json_get(v, "link")));
}

int link_ask(bool read_only, struct arena *a, const char **link, bool *found, struct cairn_error *err)
{
    CLEANUP(str_release) struct str answer = { 0 };
    struct state_other other;
    const char *token;
    if (state_find((const char *const *)environ, a, &other, &token, found, err))
        return -1;
    if (!*found)
        return 0;
    CLEANUP(fd_close) int fd = connect_to(&other);
    if (fd < 0 || exchange(fd, make_request(&other, token, read_only, a), &answer))
        return cairn_fail_errno(err, "talk to the server (pid %lld, port %d)", (long long)other.pid,
                                other.port);
    *link = read_link(&answer, a);
    return *link ? 0
                 : cairn_fail(err, CAIRN_EIO, "the server (pid %lld, port %d) gave no link",
                              (long long)other.pid, other.port);
}

int link_stop(bool *found, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct timespec nap = { 0, 20000000 };
    struct state_other other;
    const char *token;
    bool runs;
    if (state_find((const char *const *)environ, &a, &other, &token, found, err))
        return -1;
    if (!*found)
        return 0;
    if (kill((pid_t)other.pid, SIGTERM) && errno != ESRCH)
        return cairn_fail_errno(err, "end the server (pid %lld)", (long long)other.pid);
    for (int i = 0; i < 500; i++) {
        struct cairn_error ignored = { 0 };
        nanosleep(&nap, NULL);
        if (!state_find((const char *const *)environ, &a, &other, &token, &runs, &ignored) && !runs)
            return 0;
    }
    return cairn_fail(err, CAIRN_EIO, "the server (pid %lld) did not end within 10 s", (long long)other.pid);
}
