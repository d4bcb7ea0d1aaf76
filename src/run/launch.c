/* SPDX-License-Identifier: Apache-2.0 */
#include "run/launch.h"

#include "os/fault.h"
#include "os/file.h"
#include "os/terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/* The trainer's ends of the pipes; cairn's are in struct launch. */
struct ends {
    int in, out, err, null;
};

static void close_end(int *fd)
{
    if (*fd > STDERR_FILENO)
        close(*fd);
    *fd = -1;
}

static void ends_close(struct ends *e)
{
    if (e->err != e->out)
        close_end(&e->err);
    if (e->in != e->out)
        close_end(&e->in);
    close_end(&e->out);
    close_end(&e->null);
}

static int open_pipe(int *ours, int *theirs, struct cairn_error *err)
{
    int fds[2];
    if (fault_hit() || pipe2(fds, O_CLOEXEC))
        return cairn_fail_errno(err, "pipe");
    *ours = fds[0];
    *theirs = fds[1];
    return 0;
}

/* True if the trainer has a terminal now. */
static bool open_terminal(struct launch *l, struct ends *e)
{
    if (l->screen.fd < 0 || !terminal_new_pair(&l->screen, &l->master, &e->out))
        return false;
    l->out = fcntl(l->master, F_DUPFD_CLOEXEC, 3);
    fcntl(l->master, F_SETFL, O_RDWR | O_NONBLOCK); /* a trainer that does not read must not block cairn */
    if (l->keys.fd >= 0)
        e->in = e->out;
    return true;
}

/* stdout and stderr are the same file. */
static bool is_same_file(int a, int b)
{
    struct stat one, other;
    return !fstat(a, &one) && !fstat(b, &other) && one.st_dev == other.st_dev && one.st_ino == other.st_ino &&
           fcntl(a, F_GETFL) == fcntl(b, F_GETFL);
}

static int open_ends(struct launch *l, const struct launch_options *o, struct ends *e,
                     struct cairn_error *err)
{
    e->in = STDIN_FILENO;
    if (o->detached) {
        e->null = os_open_null();
        e->in = e->null < 0 ? STDIN_FILENO : e->null;
    }
    bool tty = open_terminal(l, e);
    if (!tty && open_pipe(&l->out, &e->out, err))
        return -1;
    if (tty ? isatty(STDERR_FILENO) : is_same_file(STDOUT_FILENO, STDERR_FILENO))
        e->err = e->out;
    else if (open_pipe(&l->err, &e->err, err))
        return -1;
    return 0;
}

/* A trainer without its own terminal may ask for a password on the user's, whatever its stdin is. */
static void find_terminal(struct terminal *t)
{
    int fd = os_open_tty();
    if (fd < 0)
        return;
    terminal_open(t, fd);
    close(fd);
}

int launch_start(struct launch *l, const struct launch_options *o, struct cairn_error *err)
{
    *l = (struct launch){
        .guardian = { .fd = -1 }, .screen.fd = -1, .keys.fd = -1, .master = -1, .out = -1, .err = -1
    };
    if (!o->detached) {
        terminal_open(&l->screen, STDOUT_FILENO);
        terminal_open(&l->keys, STDIN_FILENO);
    }
    CLEANUP(ends_close) struct ends e = { -1, -1, -1, -1 };
    if (open_ends(l, o, &e, err))
        return -1;
    if (l->keys.fd < 0 && l->master < 0 && !o->detached)
        find_terminal(&l->keys);
    const struct guardian_spec spec = {
        .argv = o->argv,
        .env = o->env,
        .in = e.in,
        .out = e.out,
        .err = e.err,
        .session = l->master >= 0,
        .detached = o->detached,
        .lock = o->lock,
        .mask = o->mask,
        .terminal = l->keys.fd >= 0 ? &l->keys : NULL,
        .group = getpgrp(),
    };
    if (guardian_start(&spec, &l->guardian, err))
        return -1;
    if (l->master >= 0)
        terminal_make_raw(&l->keys);
    return 0;
}

void launch_type(const struct launch *l, const char *keys, size_t n)
{
    while (n) {
        ssize_t done = write(l->master, keys, n);
        if (done < 0 && errno != EINTR)
            return;
        keys += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
}

bool launch_is_in_front(const struct launch *l)
{
    return l->master < 0 && l->keys.fd >= 0 && l->trainer > 0 && tcgetpgrp(l->keys.fd) == l->trainer;
}

void launch_take_terminal(struct launch *l)
{
    if (launch_is_in_front(l))
        terminal_give(&l->keys, getpgrp());
    if (l->keys.raw)
        terminal_restore(&l->keys);
    l->keys.raw = false;
}

bool launch_end(struct launch *l)
{
    bool clean = guardian_end(&l->guardian);
    launch_take_terminal(l);
    terminal_close(&l->keys);
    terminal_close(&l->screen);
    fd_close(&l->master);
    l->master = -1;
    fd_close(&l->out);
    fd_close(&l->err);
    l->out = l->err = -1;
    return clean;
}
