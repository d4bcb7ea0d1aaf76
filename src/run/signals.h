/* SPDX-License-Identifier: Apache-2.0
 * Signals on a file descriptor: while a child runs, those that would kill cairn arrive there instead, so
 * that the child never outlives it.
 *
 * An ignored signal (nohup) stays ignored.  SIGCHLD is set to its default: if it is ignored, the kernel
 * discards the exit status. */
#ifndef CAIRN_RUN_SIGNALS_H
#define CAIRN_RUN_SIGNALS_H

#include "base/error.h"
#include <signal.h>
#include <stddef.h>

struct signals {
    int fd; /* poll it; -1: not open */
    sigset_t before;
    struct sigaction child_before;
};

int signals_open(struct signals *s, const int *list, size_t n, struct cairn_error *err);
/* The next signal, or 0. */
int signals_read(const struct signals *s);
void signals_close(struct signals *s); /* restores the handlers; accepts one that is not open */

#endif
