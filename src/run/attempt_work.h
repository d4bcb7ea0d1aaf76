/* SPDX-License-Identifier: Apache-2.0
 * The state of an attempt; private to attempt.c and attempt_watch.c. */
#ifndef CAIRN_RUN_ATTEMPT_WORK_H
#define CAIRN_RUN_ATTEMPT_WORK_H

#include "run/attempt.h"
#include "run/launch.h"
#include "run/pump.h"
#include "run/tree.h"
#include "run/watchdog.h"

struct life {
    const struct attempt_options *o;
    struct launch launch;
    struct recorder *recorder;
    struct pump *out, *err;
    int done, n_done, n_pumps;         /* pumps that have ended */
    struct watchdog watchdog, polling; /* polling: whatever the CPU does */
    bool polling_said;
    double start, next_tick, next_memory, next_watch;
    int stops;       /* how often we were told to stop */
    double stopping; /* since when we stop it ourselves; 0: we do not */
    size_t next_step_down;
    double killed;  /* when it got its SIGKILL; 0: not yet */
    double ended;   /* when the trainer ended; 0: it runs */
    bool elsewhere; /* some of it ran where we cannot look: in a container, on another machine */
    struct attempt result;
};

/* Looks at the processes where it is time: has it hung, does the memory run out?  If so l->stopping is set, and what was seen is
 * in the journal. */
void attempt_watch(struct life *l, double now);

#endif
