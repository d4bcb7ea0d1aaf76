/* SPDX-License-Identifier: Apache-2.0 */
#include "run/probe.h"

#include "base/clock.h"
#include "os/fault.h"
#include "base/str.h"
#include "run/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const char probe_script[]; /* probe.py */

enum { RESULT_FD = 3, RESULT_MOST = 1 << 20, TALK_MOST = 64 * 1024, KILL_WAIT_MS = 5000 };

/* A signal that ends cairn ends the child first. */
static const int watched[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };

struct pipe_pair {
    int in, out; /* we read from in */
};

static void end_close(int *fd)
{
    fd_close(fd);
    *fd = -1;
}

static void pipe_close(struct pipe_pair *p)
{
    end_close(&p->in);
    end_close(&p->out);
}

static int pipe_open(struct pipe_pair *p, struct cairn_error *err)
{
    int fds[2];
    if (fault_hit() || pipe2(fds, O_CLOEXEC))
        return cairn_fail_errno(err, "pipe");
    *p = (struct pipe_pair){ fds[0], fds[1] };
    fcntl(p->in, F_SETFL, O_NONBLOCK);
    /* The child's descriptor 3 is made by dup2, which must have something to do. */
    if (p->out > RESULT_FD)
        return 0;
    int higher = fcntl(p->out, F_DUPFD_CLOEXEC, RESULT_FD + 1);
    if (higher < 0)
        return cairn_fail_errno(err, "pipe");
    close(p->out);
    p->out = higher;
    return 0;
}

static int spawn(const struct probe_options *o, const struct signals *w, const struct pipe_pair *result,
                 const struct pipe_pair *talk, pid_t *pid)
{
    char parent[16];
    snprintf(parent, sizeof(parent), "%d", (int)getpid());
    const char *const argv[] = { o->python, "-B", "-c", probe_script, o->site ? o->site : "", parent, NULL };
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t at;
    posix_spawn_file_actions_init(&fa);
    posix_spawnattr_init(&at);
    posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, talk->out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&fa, talk->out, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&fa, result->out, RESULT_FD);
    posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&at, 0);
    posix_spawnattr_setsigmask(&at, &w->before);
    int r = fault_hit() ? errno
                        : posix_spawnp(pid, o->python, &fa, &at, (char *const *)argv, (char *const *)o->env);
    posix_spawnattr_destroy(&at);
    posix_spawn_file_actions_destroy(&fa);
    return r;
}

/* Reads what is available; keeps the beginning (of stderr the end) if there is too much. */
static void drain(int fd, struct str *into, bool keep_end)
{
    char buf[8192];
    for (;;) {
        ssize_t n = read(fd, buf, sizeof(buf));
        if (n <= 0)
            return;
        if (keep_end && into->len > TALK_MOST) {
            memmove(into->s, into->s + into->len / 2, into->len - into->len / 2);
            into->len -= into->len / 2;
        }
        if (into->len < RESULT_MOST)
            str_addn(into, buf, (size_t)n);
    }
}

struct child {
    pid_t pid;
    struct pipe_pair result, talk;
    struct str result_text, talk_text;
};

static void child_close(struct child *c)
{
    pipe_close(&c->result);
    pipe_close(&c->talk);
    str_release(&c->result_text);
    str_release(&c->talk_text);
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = { 0 };
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == pid;
}

/* The signal that interrupts cairn, or 0. */
static int read_stop(const struct signals *w)
{
    int sig;
    while ((sig = signals_read(w)) == SIGCHLD)
        ;
    return sig;
}

/* Until the child ends, the time is over (*end is PROBE_HUNG), or a signal arrives. */
static void attend(struct child *c, const struct signals *w, double until, struct probe *p)
{
    struct pollfd fds[] = { { w->fd, POLLIN, 0 }, { c->result.in, POLLIN, 0 }, { c->talk.in, POLLIN, 0 } };
    while (!has_ended(c->pid)) {
        double left = until - clock_s();
        if (left <= 0) {
            p->end = PROBE_HUNG;
            return;
        }
        poll(fds, ARRAY_LEN(fds), left > 1 ? 1000 : (int)(left * 1000) + 1);
        drain(c->result.in, &c->result_text, false);
        drain(c->talk.in, &c->talk_text, true);
        for (size_t i = 1; i < ARRAY_LEN(fds); i++)
            if (fds[i].revents & POLLHUP)
                fds[i].fd = -1; /* closed: wait for SIGCHLD */
        p->code = read_stop(w);
        if (p->code) {
            p->end = PROBE_INTERRUPTED;
            return;
        }
    }
}

/* Kills the whole group before reaping the leader, while the group ID is still valid. */
static int finish(struct child *c, struct probe *p)
{
    int status = 0;
    kill(-c->pid, SIGKILL);
    for (int waited = 0; !has_ended(c->pid) && waited < KILL_WAIT_MS; waited += 20)
        poll(NULL, 0, 20); /* a process that sleeps in the driver takes long, or never ends */
    p->stuck = !has_ended(c->pid);
    waitpid(c->pid, &status, WNOHANG);
    drain(c->result.in, &c->result_text, false);
    drain(c->talk.in, &c->talk_text, true);
    return status;
}

/* The last complete line of JSON is the result; the lines before it are the stages. */
static void read_lines(const struct str *text, struct arena *a, struct probe *p)
{
    const char *at = text->s ? text->s : "";
    for (const char *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
        struct json *v = NULL;
        struct cairn_error ignored = { 0 };
        if (json_parse(at, (size_t)(end - at), &v, &ignored))
            continue;
        const char *stage = json_text(json_get(v, "stage"));
        if (str_eq(stage, "done")) {
            json_free(p->result);
            p->result = v;
            continue;
        }
        p->stage = stage ? arena_strdup(a, stage) : p->stage;
        json_free(v);
    }
}

static const char *last_line(const struct str *text, struct arena *a)
{
    size_t end = text->len;
    while (end && (text->s[end - 1] == '\n' || text->s[end - 1] == ' '))
        end--;
    size_t start = end;
    while (start && text->s[start - 1] != '\n')
        start--;
    return end > start ? arena_strndup(a, text->s + start, end - start) : NULL;
}

static void conclude(const struct child *c, int status, struct arena *a, struct probe *p)
{
    read_lines(&c->result_text, a, p);
    p->tail = last_line(&c->talk_text, a);
    if (p->end == PROBE_INTERRUPTED || p->end == PROBE_HUNG)
        return;
    p->end = p->result ? PROBE_ANSWERED : WIFSIGNALED(status) ? PROBE_CRASHED : PROBE_SILENT;
    p->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

int probe_run(const struct probe_options *o, struct arena *a, struct probe *out, struct cairn_error *err)
{
    CLEANUP(signals_close) struct signals w = { .fd = -1 };
    CLEANUP(child_close) struct child c = { .result = { -1, -1 }, .talk = { -1, -1 } };
    if (pipe_open(&c.result, err) || pipe_open(&c.talk, err) ||
        signals_open(&w, watched, ARRAY_LEN(watched), err))
        return -1;
    struct probe p = { .end = PROBE_SILENT };
    double start = clock_s();
    int r = spawn(o, &w, &c.result, &c.talk, &c.pid);
    end_close(&c.result.out);
    end_close(&c.talk.out);
    if (r) {
        p.end = PROBE_NO_PYTHON;
        p.code = r;
    } else {
        attend(&c, &w, start + o->timeout_s, &p);
        conclude(&c, finish(&c, &p), a, &p);
    }
    p.seconds = clock_s() - start;
    *out = p;
    return 0;
}

void probe_release(struct probe *p)
{
    json_free(p->result);
    p->result = NULL;
}
