/* SPDX-License-Identifier: Apache-2.0 */
#include "web/child.h"

#include "base/str.h"
#include "os/file.h"
#include "web/answer.h"
#include "web/web.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ERROR_OUTPUT = 8 << 10 };
#define INPUT "/dev/stdin" /* how a child names what it got */

struct stream {
    int fd; /* -1: closed */
    struct str text;
    size_t most;
};

struct child {
    struct children *all;
    char **argv;
    char *folder;
    int input;
    unsigned seconds;
    uint64_t memory, data;
    pid_t pid; /* 0: it waits its turn */
    struct stream out, err;
    bool timed_out, told;
    struct loop_timer *limit, *reap;
    void (*done)(void *context, const struct child_result *result);
    void *context;
    struct child *next;
};

struct children {
    struct loop *loop;
    struct child *first; /* those that run, then those that wait, in order */
    size_t running, waiting;
};

static void start_next(struct children *all);

int children_open(struct loop *l, struct children **out, struct cairn_error *err)
{
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for the list of children");
    (*out)->loop = l;
    return 0;
}

static void close_stream(struct children *all, struct stream *s)
{
    if (s->fd >= 0) {
        loop_forget(all->loop, s->fd);
        close(s->fd);
    }
    s->fd = -1;
}

static void free_child(struct child *c)
{
    struct child **at = &c->all->first;
    while (*at && *at != c)
        at = &(*at)->next;
    if (*at)
        *at = c->next;
    loop_cancel(c->all->loop, c->limit);
    loop_cancel(c->all->loop, c->reap);
    close_stream(c->all, &c->out);
    close_stream(c->all, &c->err);
    if (c->input >= 0)
        close(c->input);
    for (char **a = c->argv; a && *a; a++)
        free(*a);
    free(c->argv);
    free(c->folder);
    str_release(&c->out.text);
    str_release(&c->err.text);
    free(c);
}

void children_close(struct children *all)
{
    struct os_end end;
    if (!all)
        return;
    while (all->first) {
        if (all->first->pid) {
            os_child_kill(all->first->pid);
            os_wait(all->first->pid, 2, &end);
        }
        free_child(all->first);
    }
    free(all);
}

/* ---- its end ---- */

static void tell(struct child *c, struct os_end end)
{
    if (c->told)
        return;
    c->told = true;
    struct child_result result = {
        .end = end,
        .timed_out = c->timed_out,
        .out = c->out.text.s ? c->out.text.s : "",
        .err = c->err.text.s ? c->err.text.s : "",
        .out_n = c->out.text.len,
    };
    c->done(c->context, &result);
}

/* Its output is complete; the process ends at any moment, unless it hangs in the kernel. */
static void try_reap(void *context)
{
    struct child *c = context;
    struct children *all = c->all;
    struct os_end end = { 0 };
    int r = os_child_end(c->pid, &end);
    c->reap = NULL;
    if (c->timed_out)
        tell(c, end);
    if (r == 1) {
        c->reap = loop_after(all->loop, c->told ? 1 : 0.005, try_reap, c);
        return;
    }
    tell(c, end);
    all->running--;
    free_child(c);
    start_next(all);
}

static void kill_child(void *context)
{
    struct child *c = context;
    c->limit = NULL;
    c->timed_out = true;
    os_child_kill(c->pid);
    close_stream(c->all, &c->out);
    close_stream(c->all, &c->err);
    if (!c->reap)
        try_reap(c);
}

/* ---- its output ---- */

/* False: it is closed, or there was too much. */
static bool take_output(struct stream *s)
{
    char buf[16384];
    for (;;) {
        ssize_t n = read(s->fd, buf, sizeof(buf));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0)
            return false;
        if (s->text.len + (size_t)n > s->most)
            return false;
        str_addn(&s->text, buf, (size_t)n);
    }
}

/* What was printed first counts; the pipe is read to its end, so that the child does not wait for us. */
static void error_ready(void *context)
{
    struct child *c = context;
    char buf[4096];
    ssize_t n = read(c->err.fd, buf, sizeof(buf));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        size_t room = c->err.most - c->err.text.len;
        str_addn(&c->err.text, buf, (size_t)n < room ? (size_t)n : room);
        return;
    }
    close_stream(c->all, &c->err);
    if (c->out.fd < 0 && !c->reap)
        try_reap(c);
}

static void output_ready(void *context)
{
    struct child *c = context;
    if (take_output(&c->out))
        return;
    close_stream(c->all, &c->out);
    if (c->err.fd < 0 && !c->reap)
        try_reap(c);
}

/* ---- its start ---- */

/* Two ends; ours does not block. */
static int open_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC) || fcntl(ends[0], F_SETFL, O_NONBLOCK) ? -1 : 0;
}

static int start(struct child *c)
{
    int out[2] = { -1, -1 }, err[2] = { -1, -1 }, r = -1;
    if (!open_pipe(out) && !open_pipe(err)) {
        struct os_child spec = { .path = "/proc/self/exe",
                                 .argv = (const char *const *)c->argv,
                                 .folder = c->folder,
                                 .files = { c->input, out[1], err[1] },
                                 .memory = c->memory,
                                 .data = c->data,
                                 .cpu_s = c->seconds * 2 };
        r = os_child_start(&spec, &c->pid);
    }
    int why = errno;
    fd_close(&out[1]);
    fd_close(&err[1]);
    if (r) {
        fd_close(&out[0]);
        fd_close(&err[0]);
        errno = why;
        return -1;
    }
    c->out.fd = out[0];
    c->err.fd = err[0];
    loop_read(c->all->loop, c->out.fd, output_ready, c);
    loop_read(c->all->loop, c->err.fd, error_ready, c);
    c->limit = loop_after(c->all->loop, c->seconds, kill_child, c);
    return 0;
}

static void start_next(struct children *all)
{
    for (struct child *c = all->first, *next; c && all->running < CHILD_AT_ONCE; c = next) {
        next = c->next;
        if (c->pid)
            continue;
        all->waiting--;
        all->running++;
        if (start(c)) {
            str_addf(&c->err.text, "cairn: start the program again: %s\n", strerror(errno));
            all->running--;
            tell(c, (struct os_end){ .code = 1 });
            free_child(c);
        }
    }
}

static char **copy_argv(const char *const *argv)
{
    size_t n = 0;
    while (argv[n])
        n++;
    char **out = calloc(n + 2, sizeof(*out));
    if (!out)
        return NULL;
    out[0] = strdup("cairn");
    for (size_t i = 0; i < n; i++)
        out[i + 1] = strdup(argv[i]);
    return out;
}

/* A file in memory, so that nobody has to feed a pipe. */
static int open_input(const struct child_spec *spec)
{
    if (!spec->input)
        return os_open_null();
    int fd = os_open_memory("cairn-input");
    for (size_t at = 0; fd >= 0 && at < spec->input_n;) {
        ssize_t n = os_write_at(fd, spec->input + at, spec->input_n - at, at);
        if (n <= 0) {
            close(fd);
            return -1;
        }
        at += (size_t)n;
    }
    return fd;
}

int child_run(struct children *all, const struct child_spec *spec,
              void (*done)(void *context, const struct child_result *result), void *context,
              struct cairn_error *err)
{
    const uint64_t gib = (uint64_t)1 << 30;
    if (all->waiting == CHILD_WAITING)
        return cairn_fail(err, CAIRN_EIO, "%d requests of this kind wait already", CHILD_WAITING);
    struct child *c = calloc(1, sizeof(*c));
    if (!c)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a child");
    uint64_t memory = spec->memory ? spec->memory : 4 * gib;
    *c = (struct child){
        .all = all,
        .argv = copy_argv(spec->argv),
        .folder = spec->folder ? strdup(spec->folder) : NULL,
        .input = open_input(spec),
        .seconds = spec->seconds ? spec->seconds : CHILD_SECONDS,
        .memory = spec->opens_gpu ? 0 : memory,
        .data = spec->opens_gpu ? 2 * memory : 0,
        .out = { .fd = -1, .most = CHILD_OUTPUT },
        .err = { .fd = -1, .most = ERROR_OUTPUT },
        .done = done,
        .context = context,
    };
    if (!c->argv || c->input < 0) {
        cairn_fail_errno(err, "make the input of a child");
        free_child(c);
        return -1;
    }
    struct child **end = &all->first;
    while (*end)
        end = &(*end)->next;
    *end = c;
    all->waiting++;
    start_next(all);
    return 0;
}

/* ---- as the answer of a request ---- */

/* "cairn: message" and, on the next line, "  hint", as every command prints them. */
static void answer_failure(struct request *r, const struct child_result *result)
{
    bool is_ours = result->end.signal || !result->err[0]; /* else it says what is wrong with what was sent */
    int status = is_ours ? 500 : result->end.code == 3 ? 424 : 422;
    const char *at = str_starts(result->err, "cairn: ") ? result->err + 7 : result->err;
    size_t n = strcspn(at, "\n");
    const char *hint = at + n + (at[n] == '\n');
    int line = 0;
    hint += strspn(hint, " ");
    if (sscanf(at, INPUT ":%d:", &line) == 1) { /* a place in the text that was sent */
        const char *after = strchr(at + strlen(INPUT), ' ');
        size_t skip = after ? (size_t)(after + 1 - at) : 0;
        at += skip < n ? skip : 0;
        n -= skip < n ? skip : 0;
    }
    if (result->timed_out)
        answer_problem(r, 504, "the command did not end in time and was ended");
    else if (!n)
        answer_problem(r, status, "the command ended with %s %d and no message",
                       result->end.signal ? "signal" : "exit status",
                       result->end.signal ? result->end.signal : result->end.code);
    else
        answer_problem_hint(r, status, arena_strndup(&r->arena, at, n),
                            arena_strndup(&r->arena, hint, strcspn(hint, "\n")), line);
}

static void answer_done(void *context, const struct child_result *result)
{
    struct request *r = context;
    struct json *v = NULL;
    struct cairn_error err = { 0 };
    if (!result->timed_out && result->out_n && !json_parse(result->out, result->out_n, &v, &err))
        answer_json_text(r, 200, arena_strndup(&r->arena, result->out, result->out_n), result->out_n, NULL);
    else
        answer_failure(r, result);
    json_free(v);
    request_wake(r);
}

void child_answer(struct request *r, const struct child_spec *spec)
{
    struct cairn_error err = { 0 };
    request_later(r);
    if (!child_run(r->web->children, spec, answer_done, r, &err))
        return;
    answer_problem(r, 503, "%s", err.msg);
    answer_header(r, "Retry-After", "2");
}
