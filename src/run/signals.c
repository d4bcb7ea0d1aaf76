/* SPDX-License-Identifier: Apache-2.0 */
#include "run/signals.h"

#include "os/fault.h"
#include <sys/signalfd.h>
#include <unistd.h>

int signals_open(struct signals *s, const int *list, size_t n, struct cairn_error *err)
{
    struct sigaction now, plain = { .sa_handler = SIG_DFL };
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        if (list[i] == SIGCHLD || (!sigaction(list[i], NULL, &now) && now.sa_handler != SIG_IGN))
            sigaddset(&set, list[i]);
    s->fd = fault_hit() ? -1 : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->fd < 0)
        return cairn_fail_errno(err, "signalfd");
    sigaction(SIGCHLD, &plain, &s->child_before);
    sigprocmask(SIG_BLOCK, &set, &s->before);
    return 0;
}

int signals_read(const struct signals *s)
{
    struct signalfd_siginfo info;
    return read(s->fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

void signals_close(struct signals *s)
{
    if (s->fd < 0)
        return;
    close(s->fd);
    sigaction(SIGCHLD, &s->child_before, NULL);
    sigprocmask(SIG_SETMASK, &s->before, NULL);
    s->fd = -1;
}
