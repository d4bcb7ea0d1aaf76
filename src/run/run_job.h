/* SPDX-License-Identifier: Apache-2.0
 * One `cairn run`: plan, pre-flight check, summary, the run itself, its verdict, and saving what worked. */
#ifndef CAIRN_RUN_RUN_JOB_H
#define CAIRN_RUN_RUN_JOB_H

#include "base/json.h"
#include "base/message_sink.h"
#include "host/facts.h"
#include "run/preload.h"

/* The signals that it handles, for signals_open. */
enum { RUN_JOB_N_SIGNALS = 10 };
extern const int run_job_signals[RUN_JOB_N_SIGNALS];

struct run_job_options {
    char **argv;    /* the trainer's command */
    char **options; /* the words before it on the command line, without -- */
    size_t n_options;
    const char *trainer, *gfx, *keep_log, *resume_cmd, *json_events; /* NULL: not given */
    const char *const *keep, *const *with;                           /* NULL-terminated, or NULL */
    int gpu;                                                         /* -1: not given */
    int retries, hang_after_s;
    bool hang_explicit; /* the user gave hang_after_s */
    bool debug, no_env, strict, no_preflight, allow_cpu, detach, check_outputs, with_smi, quiet;
    struct preload_choice preload;
    const struct own_dir *journal; /* an empty folder for the journal; NULL: a new one in the state folder */
    const struct signals *signals; /* opened by the caller, who may get one before this starts; NULL: none */
    int lock; /* guardian and trainer inherit this file: it is open while a process of them is left; 0: none */
    bool silent;      /* the trainer's output goes to the log only */
    int stop_grace_s; /* how long a trainer may take to save after SIGTERM; 0: signals are passed on as they
                       * come */
    int parent;       /* --detach: a pipe to the parent, which exits when it gets a byte; -1: none */
    const struct message_sink *messages;
    struct json *(*describe_machine)(const struct facts *f); /* what facts.json holds */
};

enum { RUN_CODE_OURS = 125 }; /* cairn itself failed to start the command */

/* f was read with argv as its command.  *code: the exit code, if it returns 0. */
int run_job(const struct run_job_options *o, struct facts *f, int *code, struct cairn_error *err);

#endif
