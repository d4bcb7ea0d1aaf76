/* SPDX-License-Identifier: Apache-2.0
 * Signals as something to read: while a child lives, those that would end us arrive on a descriptor
 * instead, so that it never outlives us.
 *
 * A signal that is ignored (nohup) stays ignored.  SIGCHLD is set to its default, since an ignored one
 * would take the exit status away. */
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
/* The next one that has arrived, or 0. */
int signals_read(const struct signals *s);
void signals_close(struct signals *s); /* as it was before; accepts one that is not open */

#endif
