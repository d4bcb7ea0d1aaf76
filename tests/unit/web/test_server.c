/* SPDX-License-Identifier: Apache-2.0
 * The limits of connections with times of a second; and the loop. */
#include "web/server.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "check.h"
#include "os/listen.h"
#include "os/stop.h"
#include "web/answer.h"
#include "web/task.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop *loop;
static struct server *server;
static struct cairn_error err;
static int port;
static int bell[2]; /* a byte ends the loop, which runs on another thread */

static void app_begin(void *context, struct request *r)
{
    (void)context;
    r->body_most = 1000;
}

static void answer_soon(void *context)
{
    struct request *r = context;
    answer_bytes(r, 200, "text/plain", "later", 5, NULL);
    request_wake(r);
}

static void app_run(void *context, struct request *r)
{
    (void)context;
    if (!strcmp(r->raw, "/later")) {
        request_later(r);
        loop_after(loop, 0.05, answer_soon, r);
    } else if (!strcmp(r->raw, "/never")) {
        request_later(r);
    } else if (strcmp(r->raw, "/nothing")) {
        answer_bytes(r, 200, "text/plain", "here", 4, NULL);
    }
}

static void app_finish(void *context, struct request *r)
{
    (void)context;
    answer_header(r, "X-Finished", "yes");
}

static bool start(struct server_limits limits)
{
    const struct server_app app = { app_begin, app_run, app_finish, NULL };
    port = 0;
    int fd = os_listen_tcp("127.0.0.1", &port);
    return fd >= 0 && !loop_open(&loop, &err) && !server_open(loop, &fd, 1, &limits, &app, &server, &err);
}

static void end(void)
{
    server_close(server);
    loop_close(loop);
}

static void stop_loop(void *context)
{
    (void)context;
    loop_stop(loop);
}

static void *serve(void *context)
{
    (void)context;
    loop_run(loop, &err);
    return NULL;
}

struct client {
    int fd;
    char got[8192];
    size_t n;
    double closed_after; /* -1: still open */
};

static void send_text(struct client *c, const char *text)
{
    if (send(c->fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        c->closed_after = 0;
}

/* Reads for so long, or until it is closed; sends `drip` every 100 ms. */
static void wait_client(struct client *c, double seconds, const char *drip)
{
    double begin = clock_s(), dripped = begin;
    c->closed_after = -1;
    while (clock_s() - begin < seconds) {
        struct pollfd p = { .fd = c->fd, .events = POLLIN };
        if (poll(&p, 1, 20) > 0) {
            ssize_t n = read(c->fd, c->got + c->n, sizeof(c->got) - 1 - c->n);
            if (n <= 0) {
                c->closed_after = clock_s() - begin;
                return;
            }
            c->n += (size_t)n;
            c->got[c->n] = '\0';
        }
        if (drip && clock_s() - dripped > 0.1) {
            dripped = clock_s();
            if (send(c->fd, drip, strlen(drip), MSG_NOSIGNAL) < 0) {
                c->closed_after = clock_s() - begin;
                return;
            }
        }
    }
}

static struct client connect_client(void)
{
    return (struct client){ .fd = os_connect_tcp("127.0.0.1", port, 5000) };
}

static pthread_t thread;

static bool begin_serving(struct server_limits limits)
{
    if (pipe(bell) || !start(limits))
        return false;
    loop_read(loop, bell[0], stop_loop, NULL);
    return !pthread_create(&thread, NULL, serve, NULL);
}

static void end_serving(void)
{
    CHECK_INT(write(bell[1], "x", 1), 1);
    pthread_join(thread, NULL);
    end();
    close(bell[0]);
    close(bell[1]);
}

static const struct server_limits usual = { 16, 1, 1, 1 };

static void requests_are_answered(void)
{
    REQUIRE(begin_serving(usual));
    struct client c = connect_client();
    send_text(&c, "GET /x HTTP/1.1\r\nHost: a\r\n\r\nGET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_client(&c, 0.4, NULL);
    CHECK_HAS(c.got, "X-Finished: yes");
    CHECK_HAS(c.got, "here");
    CHECK_HAS(c.got, "later");
    send_text(&c, "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n");
    c.n = 0;
    wait_client(&c, 0.2, NULL);
    CHECK_HAS(c.got, "HTTP/1.1 500 ");
    close(c.fd);
    end_serving();
}

static void slow_headers_are_cut(void)
{
    REQUIRE(begin_serving(usual));
    struct client c = connect_client(), silent = connect_client();
    send_text(&c, "GET / HTTP/1.1\r\n");
    wait_client(&c, 5, "X");
    CHECK(c.closed_after > 0.8 && c.closed_after < 4);
    wait_client(&silent, 5, NULL);
    CHECK(silent.closed_after >= 0);
    close(c.fd);
    close(silent.fd);
    end_serving();
}

static void slow_bodies_are_cut(void)
{
    REQUIRE(begin_serving(usual));
    struct client c = connect_client();
    send_text(&c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n");
    wait_client(&c, 5, "x");
    CHECK(c.closed_after > 0.8 && c.closed_after < 4);
    close(c.fd);
    end_serving();
}

/* A second request of one connection must not be slower than the first may be. */
static void slow_second_requests_are_cut(void)
{
    REQUIRE(begin_serving(usual));
    struct client c = connect_client();
    send_text(&c, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_client(&c, 0.2, NULL);
    CHECK_HAS(c.got, "here");
    send_text(&c, "GET / HTTP/1.1\r\n");
    wait_client(&c, 6, "X");
    CHECK(c.closed_after > 0.8 && c.closed_after < 5);
    close(c.fd);
    end_serving();
}

/* A request that waits for its answer is not slow, and the server can end meanwhile. */
static void waiting_requests_stay(void)
{
    REQUIRE(begin_serving(usual));
    struct client c = connect_client();
    send_text(&c, "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_client(&c, 2.5, NULL);
    CHECK(c.closed_after < 0);
    end_serving();
    wait_client(&c, 1, NULL);
    CHECK(c.closed_after >= 0);
    close(c.fd);
}

static void too_many_connections_are_refused(void)
{
    const struct server_limits four = { 4, 5, 5, 5 };
    struct client held[4];
    REQUIRE(begin_serving(four));
    for (int i = 0; i < 4; i++)
        held[i] = connect_client();
    usleep(50000);
    struct client more = connect_client();
    wait_client(&more, 2, NULL);
    CHECK_HAS(more.got, "HTTP/1.1 503 ");
    CHECK(more.closed_after >= 0);
    close(more.fd);
    close(held[0].fd);
    usleep(50000);
    struct client again = connect_client();
    send_text(&again, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_client(&again, 0.3, NULL);
    CHECK_HAS(again.got, "here");
    close(again.fd);
    for (int i = 1; i < 4; i++)
        close(held[i].fd);
    end_serving();
}

/* ---- the loop and the tasks ---- */

static int fired[3];

static void fire(void *context)
{
    (*(int *)context)++;
}

static void timers_fire_in_time(void)
{
    REQUIRE(!loop_open(&loop, &err));
    memset(fired, 0, sizeof(fired));
    loop_every(loop, 0.02, fire, &fired[0]);
    loop_after(loop, 0.05, fire, &fired[1]);
    loop_cancel(loop, loop_after(loop, 0.01, fire, &fired[2]));
    loop_after(loop, 0.21, stop_loop, NULL);
    double begin = clock_s();
    CHECK(!loop_run(loop, &err));
    CHECK(clock_s() - begin > 0.2 && clock_s() - begin < 1);
    CHECK(fired[0] >= 4 && fired[0] <= 10);
    CHECK_INT(fired[1], 1);
    CHECK_INT(fired[2], 0);
    loop_close(loop);
}

static int worked, done_in_loop;
static pthread_t loop_thread;

static void work(void *context)
{
    (void)context;
    CHECK(!pthread_equal(pthread_self(), loop_thread));
    __atomic_add_fetch(&worked, 1, __ATOMIC_SEQ_CST);
}

static void work_done(void *context)
{
    CHECK(pthread_equal(pthread_self(), loop_thread));
    if (++done_in_loop == 20)
        loop_stop(context);
}

static void tasks_end_in_the_loop(void)
{
    struct tasks *t;
    REQUIRE(!loop_open(&loop, &err) && !tasks_open(loop, &t, &err));
    loop_thread = pthread_self();
    for (int i = 0; i < 20; i++)
        task_run(t, work, work_done, loop);
    CHECK(!loop_run(loop, &err));
    CHECK_INT(worked, 20);
    CHECK_INT(done_in_loop, 20);
    for (int i = 0; i < 3; i++)
        task_run(t, work, work_done, loop);
    tasks_close(t); /* waits for those that run */
    loop_close(loop);
}

int main(void)
{
    os_ignore_closed_pipe();
    RUN(requests_are_answered);
    RUN(slow_headers_are_cut);
    RUN(slow_bodies_are_cut);
    RUN(slow_second_requests_are_cut);
    RUN(waiting_requests_stay);
    RUN(too_many_connections_are_refused);
    RUN(timers_fire_in_time);
    RUN(tasks_end_in_the_loop);
    return check_done();
}
