/* SPDX-License-Identifier: Apache-2.0
 * One `cairn run` from the facts of the machine to the verdict: plan, pre-flight, summary, the run itself, and what is
 * learned from it. */
#ifndef CAIRN_CLI_RUN_JOB_H
#define CAIRN_CLI_RUN_JOB_H

#include "cli/machine.h"
#include "run/preload.h"

struct run_options {
    struct machine_options machine;
    const char *trainer, *preload_text, *keep_log, *resume_cmd, *json_events, *hang, *log;
    int gpu, retries, hang_after_s;
    bool debug, no_env, strict, no_preflight, allow_cpu, detach, check_outputs, with_smi, history, json, all,
        quiet;
    struct preload_choice preload;
    struct opt_list keep, with;
    char **argv;
    char **options; /* the words before it, without -- */
    size_t n_options;
};

enum { RUN_CODE_OURS = 125 }; /* it could not be started, for a reason of our own */

/* parent: a pipe to whoever waits for our start, who gets a byte and is then alone; -1: nobody does.  Returns the exit
 * code. */
int run_job(const struct run_options *o, int parent);

#endif
