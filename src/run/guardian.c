/* SPDX-License-Identifier: Apache-2.0 */
#include "run/guardian.h"

#include "os/fault.h"
#include "run/terminal.h"
#include "run/tree.h"
#include "os/terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILL_WAIT_MS = 3000, END_WAIT_MS = 4000, POLL_MS = 20 };

enum order_kind { ORDER_SIGNAL, ORDER_SIGNAL_ALL, ORDER_FRONT, ORDER_END };
struct order {
    enum order_kind kind;
    int sig;
};

static void report(int fd, enum guardian_event event, int value)
{
    const struct guardian_report r = { event, value };
    (void)!send(fd, &r, sizeof(r), MSG_NOSIGNAL);
}

/* In the child, between fork and exec: async-signal-safe calls only. */
static void become_trainer(const struct guardian_spec *s, pid_t guardian, int trouble)
{
    if (!s->detached) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != guardian)
            _exit(125); /* the guardian died before PR_SET_PDEATHSIG was set */
    }
    setpgid(0, 0);
    if (s->session)
        tcsetpgrp(s->out, getpid());
    const int from[] = { s->in, s->out, s->err };
    for (int i = 0; i < 3; i++)
        if (from[i] == i)
            fcntl(i, F_SETFD, 0);
        else
            dup2(from[i], i);
    if (s->lock > 0)
        fcntl(s->lock, F_SETFD, 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
    environ = (char **)s->env;
    execvp(s->argv[0], s->argv);
    int e = errno;
    (void)!write(trouble, &e, sizeof(e));
    _exit(e == ENOENT ? 127 : 126);
}

/* 0, or the errno of exec. */
static int start_trainer(const struct guardian_spec *s, pid_t *pid)
{
    int pipes[2], e = 0;
    if (pipe2(pipes, O_CLOEXEC))
        return errno;
    pid_t guardian = getpid();
    *pid = fork();
    if (*pid < 0)
        return errno;
    if (*pid == 0)
        become_trainer(s, guardian, pipes[1]);
    close(pipes[1]);
    setpgid(*pid, *pid); /* both do it: a signal may come before the child has run */
    while (read(pipes[0], &e, sizeof(e)) < 0 && errno == EINTR)
        ;
    close(pipes[0]);
    return e;
}

static void signal_all(int sig)
{
    struct tree t;
    if (tree_read(&t, "/proc", getpid()))
        for (size_t i = 0; i < t.n; i++)
            kill(t.process[i].pid, sig);
    tree_release(&t);
}

/* Kills all descendants; if /proc cannot be read, the process group. */
static void kill_all(pid_t trainer)
{
    setpgid(0, 0);
    if (trainer > 0)
        kill(-trainer, SIGKILL);
    tree_kill(getpid(), "/proc", KILL_WAIT_MS);
}

/* Reaps ended children, including orphans.  *trainer becomes 0 when its pid is free. */
static void collect(int fd, pid_t *trainer)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
        if (pid != *trainer)
            continue;
        if (WIFSTOPPED(status)) {
            report(fd, GUARDIAN_STOPPED, WSTOPSIG(status));
            continue;
        }
        *trainer = 0;
        report(fd, GUARDIAN_ENDED, status);
    }
}

/* In the session that we lead. */
static bool give_own_terminal(pid_t trainer)
{
    CLEANUP(fd_close) int fd = os_open_tty();
    return fd >= 0 && !tcsetpgrp(fd, trainer);
}

/* The guardian joins the foreground group, to get the terminal's signals. */
static bool give_users_terminal(const struct terminal *t, pid_t trainer)
{
    if (!t || setpgid(0, trainer))
        return false;
    terminal_give(t, trainer);
    return true;
}

/* One that did not get it would only be stopped again. */
static void bring_to_front(const struct guardian_spec *s, pid_t trainer)
{
    if (trainer > 0 && (s->session ? give_own_terminal(trainer) : give_users_terminal(s->terminal, trainer)))
        kill(-trainer, SIGCONT);
}

/* False: exit. */
static bool obey(const struct guardian_spec *s, int fd, pid_t trainer)
{
    struct order o;
    ssize_t n = recv(fd, &o, sizeof(o), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n != (ssize_t)sizeof(o)) { /* cairn died */
        if (s->terminal)
            terminal_restore(s->terminal);
        if (s->terminal && tcgetpgrp(s->terminal->fd) == trainer)
            terminal_give(s->terminal, s->group);
        if (!s->detached)
            kill_all(trainer);
        return false;
    }
    if (o.kind == ORDER_END)
        return kill_all(trainer), false;
    if (o.kind == ORDER_FRONT)
        bring_to_front(s, trainer);
    else if (o.kind == ORDER_SIGNAL_ALL && o.sig == SIGKILL)
        kill_all(0);
    else if (o.kind == ORDER_SIGNAL_ALL)
        signal_all(o.sig);
    else if (trainer > 0)
        kill(-trainer, o.sig);
    return true;
}

/* Closes all files but these, in rising order, so that readers of the pipes see their end. */
static void close_others(const int *keep, size_t n)
{
    unsigned next = 0;
    for (size_t i = 0; i < n; next = (unsigned)keep[i++] + 1)
        if ((unsigned)keep[i] > next)
            close_range(next, (unsigned)keep[i] - 1, 0);
    close_range(next, ~0U, 0);
}

static int compare_files(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The socket, the terminal and the lock. */
static void keep_own_files(const struct guardian_spec *s, int fd)
{
    int keep[3] = { fd };
    size_t n = 1;
    if (s->terminal && s->terminal->fd >= 0)
        keep[n++] = s->terminal->fd;
    if (s->lock > 0)
        keep[n++] = s->lock;
    qsort(keep, n, sizeof(keep[0]), compare_files);
    close_others(keep, n);
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGHUP);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Whether the terminal sent this signal; cairn sends some itself.  A hangup comes from the process that
 * caused it. */
static void hear(int fd, int signals)
{
    struct signalfd_siginfo info;
    while (signals >= 0 && read(signals, &info, sizeof(info)) > 0) {
        bool hangup = info.ssi_signo == SIGHUP && info.ssi_pid != (uint32_t)getpid();
        if (hangup || (info.ssi_signo != SIGCHLD && info.ssi_code == SI_KERNEL))
            report(fd, GUARDIAN_HEARD, (int)info.ssi_signo);
    }
}

static void guard(const struct guardian_spec *s, int fd)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGCHLD, SIG_DFL); /* if ignored, the kernel discards the exit status */
    if (s->session) {
        setsid();
        ioctl(s->out, TIOCSCTTY, 0);
    } else {
        setpgid(0, 0);
    }
    prctl(PR_SET_NAME, GUARDIAN_NAME);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t trainer = 0;
    int e = start_trainer(s, &trainer);
    if (e) {
        report(fd, GUARDIAN_REFUSED, e);
        return;
    }
    report(fd, GUARDIAN_STARTED, (int)trainer);
    keep_own_files(s, fd);
    int signals = open_signals();
    for (;;) {
        struct pollfd p[] = { { fd, POLLIN, 0 }, { signals, POLLIN, 0 } };
        poll(p, 2, signals < 0 ? POLL_MS : -1);
        hear(fd, signals);
        collect(fd, &trainer);
        if (p[0].revents && !obey(s, fd, trainer))
            return;
    }
}

int guardian_start(const struct guardian_spec *s, struct guardian *out, struct cairn_error *err)
{
    int pair[2];
    if (fault_hit() || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return cairn_fail_errno(err, "socketpair");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t pid = fault_hit() ? -1 : fork();
    if (pid < 0) {
        cairn_fail_errno(err, "fork");
        close(pair[0]);
        close(pair[1]);
        return -1;
    }
    if (pid == 0) {
        close(pair[0]);
        guard(s, pair[1]);
        _exit(0);
    }
    close(pair[1]);
    *out = (struct guardian){ .pid = pid, .fd = pair[0] };
    return 0;
}

struct guardian_report guardian_read(const struct guardian *g)
{
    struct guardian_report r = { GUARDIAN_NOTHING, 0 };
    ssize_t n = recv(g->fd, &r, sizeof(r), MSG_DONTWAIT);
    if (n == (ssize_t)sizeof(r))
        return r;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return (struct guardian_report){ GUARDIAN_NOTHING, 0 };
    return (struct guardian_report){ GUARDIAN_GONE, 0 };
}

static void give_order(const struct guardian *g, enum order_kind kind, int sig)
{
    const struct order o = { kind, sig };
    (void)!send(g->fd, &o, sizeof(o), MSG_NOSIGNAL);
}

void guardian_signal(const struct guardian *g, int sig)
{
    give_order(g, ORDER_SIGNAL, sig);
}

void guardian_signal_all(const struct guardian *g, int sig)
{
    give_order(g, ORDER_SIGNAL_ALL, sig);
}

void guardian_bring_to_front(const struct guardian *g)
{
    give_order(g, ORDER_FRONT, 0);
}

bool guardian_end(struct guardian *g)
{
    if (g->pid <= 0)
        return true;
    give_order(g, ORDER_END, 0);
    bool ended = false;
    for (int waited = 0; !ended && waited < END_WAIT_MS; waited += POLL_MS) {
        ended = waitpid(g->pid, NULL, WNOHANG) != 0;
        if (!ended)
            poll(NULL, 0, POLL_MS);
    }
    if (!ended)
        kill(g->pid, SIGKILL);
    /* Processes that the guardian could not kill, or left because it was killed, are our children now. */
    bool clean = tree_kill(getpid(), "/proc", ended ? 200 : KILL_WAIT_MS);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    close(g->fd);
    *g = (struct guardian){ .pid = 0, .fd = -1 };
    return clean;
}
