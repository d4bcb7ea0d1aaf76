/* SPDX-License-Identifier: Apache-2.0
 * One attempt: starts the trainer, copies its output, forwards signals, watches it, and returns when all
 * of its processes have ended. */
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
    int lock, stop_grace_s; /* see run_job.h */
    bool silent;
    double hang_after_s;     /* 0: no watchdog */
    bool hang_explicit;      /* the user set --hang-after: it also counts at the start and for servers */
    const char *copy;        /* --keep-log; may be NULL */
    const char *calls;       /* prefix of the files of GPU calls; NULL: none */
    struct observe *observe; /* or NULL */
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
    ATTEMPT_MEMORY,      /* stopped because the host was running out of memory */
    ATTEMPT_INTERRUPTED, /* by a signal to cairn, or because the reader of its output left */
};
const char *attempt_end_name(enum attempt_end e);

struct attempt {
    enum attempt_end end;
    int code;  /* exit status, or 128 + signal */
    int error; /* errno, if it was not started */
    bool saw_step;
    bool clean;       /* none of its processes is left */
    bool abandoned;   /* its output could not be written in time: the diagnoser is still in use */
    bool lost_output; /* some output could not be written: no success, but not the trainer's failure */
    double seconds;
    struct diagnose_memory memory;
    enum diagnose_gpu_use gpu_use; /* if it hung */
    bool dumped;                   /* hang.txt was written */
};

/* Fails only if the attempt could not be made at all (no pipe, no process). */
int attempt_run(const struct attempt_options *o, struct attempt *out, struct cairn_error *err);

#endif
