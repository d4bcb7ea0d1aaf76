/* SPDX-License-Identifier: Apache-2.0
 * The supervisor of one attempt of a job: `cairn job exec UID`.
 *
 * It takes the job's lock, waits until its GPU is idle, runs the command as `cairn run` does, records how it
 * ended, and starts the next job of the queue.  It runs in a session of its own, with supervisor.log as its
 * output; nobody waits for it. */
#ifndef CAIRN_JOB_EXEC_H
#define CAIRN_JOB_EXEC_H

#include "base/error.h"
#include "base/json.h"
#include "base/message_sink.h"
#include "host/facts.h"

struct job_exec_options {
    const char *state, *uid;
    const char *root; /* --root; NULL: this machine */
    const struct message_sink *messages;
    struct json *(*describe_machine)(const struct facts *f); /* see run/run_job.h */
};

/* 0 also if the job is not to be run, or already is. */
int job_exec(const struct job_exec_options *o, struct cairn_error *err);

#endif
