/* SPDX-License-Identifier: Apache-2.0
 * Starts this command anew as several ranks of one job on this machine, under mpirun: `cairn train --ranks N`.
 *
 * The ranks' standard input is a pipe from here, which mpirun passes to rank 0.  A byte in it, or its end, asks the job to stop: so it
 * stops after a step, and with this process, however that ends. */
#ifndef CAIRN_START_LAUNCH_RANKS_H
#define CAIRN_START_LAUNCH_RANKS_H

#include "base/error.h"
#include <stdbool.h>

struct launch_ranks {
    int ranks;
    int argc; /* begins with the command's name, as for the ranks */
    char **argv;
    int (*signals)(
        void); /* how many have asked to stop: the first one saves, the second one ends all at once */
};
/* Returns when the job has ended, with its exit status. */
int start_launch_ranks(const struct launch_ranks *l, int *exit_code, struct cairn_error *err);

/* In a rank: whether this process was started so; and calls fn, on a thread, each time that it is asked to stop. */
bool start_is_launched(void);
int start_watch_launcher(void (*fn)(void), struct cairn_error *err);

#endif
