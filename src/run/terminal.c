/* SPDX-License-Identifier: Apache-2.0 */
#include "run/terminal.h"

#include "os/fault.h"
#include "os/file.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

void terminal_open(struct terminal *t, int fd)
{
    *t = (struct terminal){ .fd = -1 };
    if (!isatty(fd) || tcgetattr(fd, &t->before))
        return;
    t->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

void terminal_close(struct terminal *t)
{
    if (t->fd < 0)
        return;
    if (t->raw)
        terminal_restore(t);
    close(t->fd);
    *t = (struct terminal){ .fd = -1 };
}

bool terminal_is_ours(const struct terminal *t)
{
    return t->fd >= 0 && tcgetpgrp(t->fd) == getpgrp();
}

bool terminal_is_gone(const struct terminal *t)
{
    struct pollfd p = { .fd = t->fd };
    return t->fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

void terminal_make_raw(struct terminal *t)
{
    if (!terminal_is_ours(t))
        return;
    struct termios raw = t->before;
    cfmakeraw(&raw);
    t->raw = t->fresh = !tcsetattr(t->fd, TCSADRAIN, &raw);
}

ssize_t terminal_read(struct terminal *t, char *keys, size_t size)
{
    ssize_t n = read(t->fd, keys, size);
    for (ssize_t i = 0; t->fresh && i < n; i++)
        if (!keys[i])
            keys[i] = (char)t->before.c_cc[VEOF];
    t->fresh = false;
    return n;
}

/* The kernel stops a background process that changes a terminal, unless SIGTTOU is blocked. */
static void block_stopping(sigset_t *before)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &stop, before);
}

void terminal_restore(const struct terminal *t)
{
    sigset_t before;
    block_stopping(&before);
    tcsetattr(t->fd, TCSANOW, &t->before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void terminal_copy_size(const struct terminal *from, int to)
{
    struct winsize size;
    if (from->fd >= 0 && !ioctl(from->fd, TIOCGWINSZ, &size))
        ioctl(to, TIOCSWINSZ, &size);
}

void terminal_give(const struct terminal *t, int group)
{
    sigset_t before;
    block_stopping(&before);
    tcsetpgrp(t->fd, group);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int open_slave(int master)
{
    char name[64];
    if (grantpt(master) || unlockpt(master) || ptsname_r(master, name, sizeof(name)))
        return -1;
    return os_open(name, OS_READ | OS_WRITE);
}

bool terminal_new_pair(const struct terminal *like, int *master, int *slave)
{
    *master = fault_hit() ? -1 : posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (*master < 0)
        return false;
    *slave = open_slave(*master);
    if (*slave < 0) {
        close(*master);
        return false;
    }
    tcsetattr(*slave, TCSANOW, &like->before);
    terminal_copy_size(like, *slave);
    return true;
}

bool terminal_is_held_up(int master)
{
    int slave = open_slave(master);
    if (slave < 0)
        return false;
    struct pollfd room = { slave, POLLOUT, 0 };
    bool held_up = poll(&room, 1, 0) == 0;
    close(slave);
    return held_up;
}

char terminal_key(int master, unsigned char key)
{
    struct termios now;
    if (tcgetattr(master, &now) || !(now.c_lflag & ISIG))
        return 0;
    return key == now.c_cc[VINTR] || key == now.c_cc[VQUIT] ? 'c' : key == now.c_cc[VSUSP] ? 'z' : 0;
}
