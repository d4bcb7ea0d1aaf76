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
    struct watchdog watchdog, polling; /* polling ignores CPU time */
    bool polling_said;
    double start, next_tick, next_memory, next_watch;
    int stops;       /* number of signals that ask cairn to stop */
    double stopping; /* since when cairn stops the trainer; 0: it does not */
    size_t next_step_down;
    double grace;    /* since when the trainer may save and end; 0: it was not asked to */
    bool grace_over; /* it got SIGTERM */
    double killed;   /* time of SIGKILL; 0: not sent */
    double ended;    /* when the trainer ended; 0: it runs */
    bool elsewhere;  /* some of it runs where we cannot see it: in a container, on another machine */
    struct attempt result;
};

/* Checks the processes if it is time: do they hang, does memory run out?  If so it sets l->stopping and
 * writes evidence to the journal. */
void attempt_watch(struct life *l, double now);

#endif
