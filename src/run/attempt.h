/* SPDX-License-Identifier: Apache-2.0
 * One attempt: starts the trainer, carries its output, forwards signals, watches it, and returns when nothing of it
 * is left. */
#ifndef CAIRN_RUN_ATTEMPT_H
#define CAIRN_RUN_ATTEMPT_H

#include "base/error.h"
#include "base/message_sink.h"
#include "run/memory_monitor.h"
#include "run/journal.h"
#include "run/observe.h"
#include "run/recorder.h"
#include "run/signals.h"
#include <stdbool.h>

struct attempt_options {
    char *const *argv;
    const char *const *env;
    bool detached;
    double hang_after_s;     /* 0: no watchdog */
    bool hang_explicit;      /* the user gave the time: no grace at the start, no excuses for servers */
    const char *copy;        /* --keep-log; may be NULL */
    const char *calls;       /* what the files of GPU calls begin with; NULL: there are none */
    struct observe *observe; /* NULL: nobody wants to know */
    struct diagnoser *diagnoser;
    struct memory_monitor *monitor;
    struct journal *journal;
    const struct signals *signals;
    const struct message_sink *messages;
};

enum attempt_end {
    ATTEMPT_ENDED,       /* by itself */
    ATTEMPT_NOT_STARTED, /* code is 126 or 127, error is errno */
    ATTEMPT_HUNG,        /* stopped by the watchdog */
    ATTEMPT_MEMORY,      /* stopped because the host's memory ran out */
    ATTEMPT_INTERRUPTED, /* we were told to stop, and passed it on; or its reader left */
};
const char *attempt_end_name(enum attempt_end e);

struct attempt {
    enum attempt_end end;
    int code;  /* exit status, or 128 + signal */
    int error; /* errno, when it was not started */
    bool saw_step;
    bool clean;       /* nothing of it is left */
    bool abandoned;   /* its output could not be passed on in time: the diagnoser is still in use */
    bool lost_output; /* nor all of it, for some error: no success, but no failure of the trainer's either */
    double seconds;
    struct diagnose_memory memory;
    enum diagnose_gpu_use gpu_use; /* of one that hung */
    bool dumped;                   /* where it hung is in hang.txt */
};

/* Fails only where the attempt could not be made at all (no pipe, no process). */
int attempt_run(const struct attempt_options *o, struct attempt *out, struct cairn_error *err);

#endif
