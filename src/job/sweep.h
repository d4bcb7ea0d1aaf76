/* SPDX-License-Identifier: Apache-2.0
 * Ends the processes of a job whose supervisor and guardian were both killed.
 *
 * Normally the guardian ends them.  If it is killed too, the kernel ends the trainer, but not what the trainer
 * started: those would compute on, unseen, beside the next job. */
#ifndef CAIRN_JOB_SWEEP_H
#define CAIRN_JOB_SWEEP_H

#include <stdbool.h>
#include <sys/types.h>

/* Processes of the job that this machine shows: those that hold its lock, and those that were started with its
 * journal in CAIRN_RUN.  Kills them, unless a supervisor or a guardian is among them.  True if any is left. */
bool sweep(const char *state, const char *uid);
/* Whether a process was started for a job whose journal has this in its path: "/jobs/" fits any. */
bool sweep_is_of_job(pid_t pid, const char *journal);

#endif
