/* SPDX-License-Identifier: Apache-2.0 */
#include "web/server.h"

#include "base/clock.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/listen.h"
#include "web/answer.h"
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { LISTENERS = 4 };
/* Of one connection.  Headers of 16 KiB fit with their table; files pass through it in pieces of this size. */
enum { CONNECTION_MEMORY = 32 << 10 };
/* A body that is not wanted is read all the same up to this size: a connection that is closed before would take
 * the answer with it. */
enum { SWALLOW = 1 << 20 };

const struct server_limits server_usual_limits = { 256, 30, 60, 120 };

struct connection {
    struct server *server;
    struct MHD_Connection *mhd;
    struct request *request; /* NULL: between two */
    int fd;
    double deadline; /* it is cut then; 0: never */
    bool reading;    /* its request is not complete yet */
    bool is_cut;     /* it only has to be closed */
    struct connection *next;
};

struct server {
    struct loop *loop;
    struct loop_timer *tick; /* while there are connections */
    struct MHD_Daemon *daemon;
    struct server_app app;
    struct server_limits limits;
    int listener[LISTENERS];
    size_t n_listeners;
    bool paused; /* no descriptor is left for another connection */
    struct loop_timer *pause;
    struct connection *connections;
    size_t n_connections;
};

/* ---- connections ---- */

static void wake(struct request *r)
{
    struct connection *c = r->connection;
    if (!r->suspended)
        return;
    r->suspended = false;
    MHD_resume_connection(c->mhd);
}

/* The library sees that it is closed, and asks us no more. */
static void cut_connection(struct connection *c)
{
    c->is_cut = true;
    os_shut(c->fd);
    if (c->request)
        wake(c->request);
}

static void cut(struct request *r)
{
    cut_connection(r->connection);
}

/* The library misses an end that comes together with the last bytes, and looks at no stream that has nothing to
 * send. */
static bool is_gone(const struct connection *c)
{
    bool listens = c->request && c->request->answer.kind == ANSWER_STREAM;
    return (c->reading || listens) && os_is_shut(c->fd);
}

static void tick(void *context)
{
    struct server *s = context;
    double now = clock_s();
    for (struct connection *c = s->connections; c; c = c->next) {
        bool late = c->deadline > 0 && now > c->deadline && !(c->request && c->request->suspended);
        if (late || is_gone(c))
            cut_connection(c);
    }
}

static void accept_ready(void *context);

static void listen_again(void *context)
{
    struct server *s = context;
    s->paused = false;
    s->pause = NULL;
    for (size_t i = 0; i < s->n_listeners; i++)
        loop_read(s->loop, s->listener[i], accept_ready, s);
}

/* Without a descriptor for it, a connection would wait, and wake the loop without end. */
static void pause_listening(struct server *s)
{
    if (s->paused)
        return;
    s->paused = true;
    for (size_t i = 0; i < s->n_listeners; i++)
        loop_forget(s->loop, s->listener[i]);
    s->pause = loop_after(s->loop, 1, listen_again, s);
}

static void refuse(int fd)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n"
                               "Connection: close\r\n\r\n";
    ssize_t ignored = write(fd, text, sizeof(text) - 1);
    (void)ignored;
    close(fd);
}

static void accept_all(struct server *s, int listener)
{
    struct sockaddr_storage from;
    socklen_t size;
    for (;;) {
        int fd = os_accept(listener, &from, &size);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
            pause_listening(s);
        if (fd < 0)
            return;
        if (s->n_connections >= s->limits.connections)
            refuse(fd);
        else
            MHD_add_connection(s->daemon, fd, (struct sockaddr *)&from, size); /* closes it if it fails */
    }
}

static void accept_ready(void *context)
{
    struct server *s = context;
    for (size_t i = 0; i < s->n_listeners && !s->paused; i++)
        accept_all(s, s->listener[i]);
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static void connection_begins(struct server *s, struct MHD_Connection *mhd, void **place)
{
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *c = calloc(1, sizeof(*c));
    if (!c)
        abort();
    *c = (struct connection){ .server = s,
                              .mhd = mhd,
                              .fd = fd->connect_fd,
                              .deadline = clock_s() + s->limits.header_s,
                              .reading = true,
                              .next = s->connections };
    s->connections = c;
    if (!s->n_connections++)
        s->tick = loop_every(s->loop, 1, tick, s);
    *place = c;
}

static void connection_ends(struct server *s, struct connection *c)
{
    struct connection **at = &s->connections;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    if (!--s->n_connections) {
        loop_cancel(s->loop, s->tick);
        s->tick = NULL;
    }
    if (c->request) /* its headers never were complete */
        request_release(c->request);
    free(c);
}

static void notify_connection(void *context, struct MHD_Connection *mhd, void **place,
                              enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_begins(context, mhd, place);
    else if (*place)
        connection_ends(context, *place);
}

/* ---- a request ---- */

/* The first line is here.  The library would decode the target; we do that ourselves. */
static void *request_begins(void *context, const char *uri, struct MHD_Connection *mhd)
{
    (void)context;
    struct connection *c = connection_of(mhd);
    if (!c)
        return NULL;
    if (c->request)
        request_release(c->request);
    struct request *r = calloc(1, sizeof(*r));
    if (!r)
        abort();
    r->raw = arena_strdup(&r->arena, uri);
    r->connection = c;
    r->wake = wake;
    r->cut = cut;
    return c->request = r;
}

static void request_ends(void *context, struct MHD_Connection *mhd, void **place,
                         enum MHD_RequestTerminationCode code)
{
    (void)context, (void)code;
    struct connection *c = connection_of(mhd);
    struct request *r = *place;
    *place = NULL;
    if (!r)
        return;
    if (c && c->request == r) {
        c->request = NULL;
        c->reading = true;
        c->deadline = clock_s() + c->server->limits.idle_s + c->server->limits.header_s;
    }
    request_release(r);
}

static size_t keep_escapes(void *context, struct MHD_Connection *mhd, char *text)
{
    (void)context, (void)mhd;
    return strlen(text);
}

static enum MHD_Result add_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct request *r = context;
    struct header *h = ARENA_PUSH(&r->arena, r->headers, r->n_headers);
    h->name = arena_strdup(&r->arena, name);
    h->value = arena_strdup(&r->arena, value ? value : "");
    return MHD_YES;
}

/* How long the body will be, as the headers say. */
static void read_length(struct request *r)
{
    const char *length = request_header(r, "Content-Length");
    r->is_chunked = request_header(r, "Transfer-Encoding") != NULL;
    if (length && !cairn_parse_u64(length, &r->announced))
        r->announced = UINT64_MAX;
    r->has_body = r->is_chunked || r->announced > 0;
}

static void read_headers(struct request *r, struct MHD_Connection *mhd, const char *method)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    r->method = arena_strdup(&r->arena, method);
    r->header_bytes = size ? size->header_size : 0;
    MHD_get_connection_values(mhd, MHD_HEADER_KIND, add_header, r);
    read_length(r);
}

/* ---- its answer ---- */

static ssize_t read_stream(void *context, uint64_t at, char *to, size_t most)
{
    (void)at;
    struct request *r = context;
    struct connection *c = r->connection;
    ssize_t n = c->is_cut ? -1 : r->answer.read(r->answer.context, to, most);
    if (n < 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (!n) {
        r->suspended = true;
        MHD_suspend_connection(c->mhd);
    }
    return n;
}

static struct MHD_Response *make_response(struct request *r)
{
    struct answer *a = &r->answer;
    struct MHD_Response *out = NULL;
    switch (a->kind) {
    case ANSWER_FILE:
        out = MHD_create_response_from_fd_at_offset64(a->length, a->fd, a->offset);
        if (out)
            a->fd = -1; /* the library closes it */
        break;
    case ANSWER_STREAM:
        if (strcmp(r->method, "HEAD")) {
            out = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, read_stream, r, NULL);
            break;
        }
        /* fall through */
    case ANSWER_NONE:
    case ANSWER_BYTES: /* lives as long as the request, which is longer than the answer */
        out = MHD_create_response_from_buffer(a->n, (void *)(uintptr_t)(a->bytes ? a->bytes : ""),
                                              MHD_RESPMEM_PERSISTENT);
        break;
    }
    return out;
}

static enum MHD_Result send_answer(struct server *s, struct request *r, struct MHD_Connection *mhd)
{
    struct connection *c = r->connection;
    if (r->answer.kind == ANSWER_NONE)
        answer_problem(r, 500, "%s %s has no answer", r->method, r->raw);
    s->app.finish(s->app.context, r);
    c->reading = false;
    c->deadline = 0; /* from here on a client that does not read is noticed by its silence */
    struct MHD_Response *response = make_response(r);
    if (!response)
        return MHD_NO;
    for (size_t i = 0; i < r->answer.n_headers; i++)
        MHD_add_response_header(response, r->answer.headers[i].name, r->answer.headers[i].value);
    enum MHD_Result done = MHD_queue_response(mhd, (unsigned)r->answer.status, response);
    MHD_destroy_response(response);
    return done;
}

/* ---- the steps of a request ---- */

static void grow_body(struct request *r, size_t more)
{
    size_t need = r->body_n + more + 1;
    if (need <= r->body_room)
        return;
    size_t room = r->body_room ? r->body_room : 4096;
    while (room < need)
        room *= 2;
    char *body = realloc(r->body, room);
    if (!body)
        abort();
    r->body = body;
    r->body_room = room;
}

static void take_body(struct request *r, const char *bytes, size_t n)
{
    if (r->answer.kind != ANSWER_NONE)
        return; /* it was refused: the rest is only swallowed */
    if (r->sink) {
        r->sink->take(r, bytes, n);
        return;
    }
    if (n > r->body_most - r->body_n) {
        answer_problem(r, 413, "the body is larger than %zu bytes", r->body_most);
        return;
    }
    grow_body(r, n);
    memcpy(r->body + r->body_n, bytes, n);
    r->body_n += n;
    r->body[r->body_n] = '\0';
}

static bool is_swallowed(const struct request *r)
{
    return !r->has_body || (!request_header(r, "Expect") && (r->is_chunked || r->announced <= SWALLOW));
}

static enum MHD_Result headers_are_here(struct server *s, struct request *r, struct MHD_Connection *mhd,
                                        const char *method)
{
    struct connection *c = r->connection;
    read_headers(r, mhd, method);
    s->app.begin(s->app.context, r);
    c->deadline = r->sink ? 0 : clock_s() + s->limits.body_s;
    if (r->answer.kind == ANSWER_NONE || is_swallowed(r))
        return MHD_YES;
    return send_answer(s, r, mhd);
}

static enum MHD_Result all_is_here(struct server *s, struct request *r, struct MHD_Connection *mhd)
{
    struct connection *c = r->connection;
    c->deadline = 0;
    c->reading = false;
    if (r->answer.kind == ANSWER_NONE && !r->later)
        s->app.run(s->app.context, r);
    /* A handler on a thread may be setting the answer just now. */
    if (!r->change && (r->answer.kind != ANSWER_NONE || !r->later))
        return send_answer(s, r, mhd);
    r->suspended = true;
    MHD_suspend_connection(mhd);
    return MHD_YES;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *mhd, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_n, void **place)
{
    (void)url, (void)version;
    struct server *s = context;
    struct request *r = *place;
    struct connection *c = r ? r->connection : NULL;
    if (!c || c->is_cut)
        return MHD_NO;
    if (!r->method)
        return headers_are_here(s, r, mhd, method);
    if (!*upload_n)
        return all_is_here(s, r, mhd);
    r->swallowed += r->answer.kind != ANSWER_NONE && !r->sink ? *upload_n : 0;
    if (r->swallowed > 2 * SWALLOW)
        return MHD_NO;
    take_body(r, upload, *upload_n);
    *upload_n = 0;
    return MHD_YES;
}

/* ---- the loop ---- */

static int run_library(void *context)
{
    struct server *s = context;
    MHD_UNSIGNED_LONG_LONG ms;
    MHD_run(s->daemon);
    if (MHD_get_timeout(s->daemon, &ms) != MHD_YES)
        return -1;
    return ms < 3600000 ? (int)ms : 3600000;
}

/* Something came; run_library takes it before the next wait. */
static void library_ready(void *context)
{
    (void)context;
}

/* A client that went away is no news. */
static void drop_log(void *context, const char *fmt, va_list ap)
{
    (void)context, (void)fmt, (void)ap;
}

int server_open(struct loop *l, const int *listeners, size_t n, const struct server_limits *limits,
                const struct server_app *app, struct server **out, struct cairn_error *err)
{
    struct server *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    s->loop = l;
    s->app = *app;
    s->limits = *limits;
    memcpy(s->listener, listeners, n * sizeof(*listeners));
    s->n_listeners = n;
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
        NULL, handle, s, MHD_OPTION_EXTERNAL_LOGGER, drop_log, NULL, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)limits->connections + 8, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_TIMEOUT, limits->idle_s, MHD_OPTION_NOTIFY_COMPLETED, request_ends, s,
        MHD_OPTION_NOTIFY_CONNECTION, notify_connection, s, MHD_OPTION_URI_LOG_CALLBACK, request_begins, s,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
        MHD_OPTION_END);
    const union MHD_DaemonInfo *info =
        s->daemon ? MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info) {
        cairn_fail(err, CAIRN_EIO, "libmicrohttpd did not start");
        server_close(s);
        return -1;
    }
    loop_read(l, info->epoll_fd, library_ready, s);
    loop_before_wait(l, run_library, s);
    listen_again(s);
    *out = s;
    return 0;
}

void server_close(struct server *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_listeners; i++) {
        loop_forget(s->loop, s->listener[i]);
        close(s->listener[i]);
    }
    /* The library must not be stopped while connections are suspended. */
    for (struct connection *c = s->connections; c; c = c->next)
        cut_connection(c);
    loop_before_wait(s->loop, NULL, NULL);
    if (s->daemon) {
        MHD_run(s->daemon);
        MHD_stop_daemon(s->daemon);
    }
    loop_cancel(s->loop, s->tick);
    loop_cancel(s->loop, s->pause);
    free(s);
}

size_t server_connections(const struct server *s)
{
    return s->n_connections;
}
