/* SPDX-License-Identifier: Apache-2.0
 * A run: attempts, until one succeeds or nothing is left that may be tried.
 *
 * After a failure the diagnosis decides; one thing is changed at a time, and each attempt with its verdict is in the
 * journal. */
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
    const struct plan_options *planning; /* how it was made; NULL: the environment is left alone */
    const char *const *env;              /* of the first attempt */
    const char *const *keep;             /* --keep; or NULL */
    const char *gfx;                     /* --gfx; or NULL */
    const char *trainer;                 /* --trainer; or NULL */
    const char *resume_cmd;              /* --resume-cmd; or NULL */
    const char *keep_log;                /* --keep-log; or NULL */
    const char *calls;                   /* what the files of GPU calls begin with; or NULL */
    int retries;
    int hang_after_s;
    bool hang_explicit, allow_cpu, detached;
    struct journal *journal;
    const struct signals *signals;
    const struct message_sink *messages;
};

/* One attempt, what was found, and what had been changed for it. */
struct supervise_try {
    struct attempt attempt;
    struct diagnosis diagnosis; /* class_id is NULL when there was nothing to diagnose */
    struct gpu_calls calls;     /* the last ones on the GPU, of a failure */
    int64_t log_offset_bytes;   /* where it begins in the journal's log, which all attempts share */
    const char *change;         /* NULL for the first */
    const char *resumed;        /* why and from where; NULL: from the beginning */
};

struct supervise_result {
    int code; /* for the exit of `cairn run` */
    struct supervise_try *tries;
    size_t n_tries;
    struct memory_monitor_reading peak;
    /* All the changes that the last attempt ran with. */
    struct plan_var *set;
    size_t n_set;
    const char **unset;
    size_t n_unset;
    const char *trainer;           /* its name, or its script's; or NULL */
    const char *torch;             /* where the PyTorch lies that was loaded; NULL: none was seen */
    const struct mismatch *undone; /* of the environment, by what the command starts */
    size_t n_undone;
};

/* Everything in the result is in the arena.  Fails only if no attempt could be made at all. */
int supervise(const struct supervise_options *o, struct arena *a, struct supervise_result *out,
              struct cairn_error *err);
/* It trained, whatever ended it: exit 0, or somebody stopped it after it had begun to train. */
bool supervise_worked(const struct supervise_result *r);

#endif
