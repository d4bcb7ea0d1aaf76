/* SPDX-License-Identifier: Apache-2.0
 * A run: attempts, until one succeeds or nothing is left to try.
 *
 * After a failure the diagnosis decides.  Each retry changes one thing; the journal has every attempt and
 * its verdict. */
#ifndef CAIRN_RUN_SUPERVISE_H
#define CAIRN_RUN_SUPERVISE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/message_sink.h"
#include "rules/diagnose.h"
#include "run/actual.h"
#include "run/attempt.h"
#include "run/gpu_calls.h"
#include "run/memory_monitor.h"
#include "run/journal.h"
#include "run/signals.h"
#include <stdbool.h>

struct supervise_options {
    char *const *argv;
    char *const *options; /* of the command line, for a command to type */
    size_t n_options;
    const struct facts *facts;
    const struct plan *plan;
    const struct plan_options *planning; /* how the plan was made; NULL: --no-env */
    const char *const *env;              /* of the first attempt */
    const char *const *keep;             /* --keep; or NULL */
    const char *gfx;                     /* --gfx; or NULL */
    const char *trainer;                 /* --trainer; or NULL */
    const char *resume_cmd;              /* --resume-cmd; or NULL */
    const char *keep_log;                /* --keep-log; or NULL */
    const char *calls;                   /* prefix of the files of GPU calls; or NULL */
    int retries;
    int hang_after_s;
    bool hang_explicit, allow_cpu, detached;
    int lock, stop_grace_s; /* see run_job.h */
    bool silent;
    struct journal *journal;
    const struct signals *signals;
    const struct message_sink *messages;
};

/* One attempt, its diagnosis, and what was changed for it. */
struct supervise_try {
    struct attempt attempt;
    struct diagnosis diagnosis; /* class_id is NULL if there was nothing to diagnose */
    struct gpu_calls calls;     /* the last GPU calls before a failure */
    int64_t log_offset_bytes;   /* where it begins in the journal's log, which has all attempts */
    const char *change;         /* NULL for the first */
    const char *resumed;        /* why and from where; NULL: from the beginning */
};

struct supervise_result {
    int code; /* exit code of `cairn run` */
    struct supervise_try *tries;
    size_t n_tries;
    struct memory_monitor_reading peak;
    /* All the changes that the last attempt ran with. */
    struct plan_var *set;
    size_t n_set;
    const char **unset;
    size_t n_unset;
    const char *trainer;           /* its name, or that of its script; or NULL */
    const char *torch;             /* folder of the PyTorch that was loaded; NULL: none was seen */
    const struct mismatch *undone; /* variables that the command changed */
    size_t n_undone;
};

/* Everything in the result is in the arena.  Fails only if no attempt could be made at all. */
int supervise(const struct supervise_options *o, struct arena *a, struct supervise_result *out,
              struct cairn_error *err);
/* The trainer exited with 0, or was interrupted after it had completed a step. */
bool supervise_worked(const struct supervise_result *r);

#endif
